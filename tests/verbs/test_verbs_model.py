"""Clients of NICs that do anything, right or wrong, against a model of what verbs promise.

Two clients of one NIC and one of another make and destroy objects, connect queue pairs, post requests with keys,
lengths and addresses that may be wrong, and die. The model says which requests succeed with which data, with which
`ibv_wc_status` the others end, which asynchronous events come, and which bytes of which client's memory change: all
others stay, whatever a request names. Clients and clock are played: see `tests/verbs/played.py`.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.verbs.played import (
    FENCE,
    MTU_BYTES,
    SIGNALED,
    SOLICITED,
    Client,
    Completion,
    CompletionQueue,
    Nics,
    Piece,
    QueuePair,
    Send,
    SharedQueue,
)
from weft.traffic.verbs.client import Changes
from weft.traffic.verbs.protocol import KINDS
from weft.traffic.verbs.states import Access, Kind, State

ARENA_BYTES = 1 << 12
GRH_BYTES = 40
INLINE_BYTES = 64
LOCAL_WRITE = 1
EVERYTHING = LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
RECEIVING = (State.RTR, State.RTS, State.SQD)
MOST = {"domains": 3, "regions": 6, "queues": 3, "shared": 2, "pairs": 6, "receives": 12, "handles": 4}


class Op(IntEnum):
    """`enum ibv_wr_opcode`."""

    WRITE = 0
    WRITE_IMM = 1
    SEND = 2
    SEND_IMM = 3
    READ = 4
    COMPARE_SWAP = 5
    FETCH_ADD = 6


IMMEDIATE = (Op.WRITE_IMM, Op.SEND_IMM)
WRITES = (Op.WRITE, Op.WRITE_IMM)
SENDS = (Op.SEND, Op.SEND_IMM)
ATOMICS = (Op.COMPARE_SWAP, Op.FETCH_ADD)
READS = (Op.READ, *ATOMICS)
# `enum ibv_wc_opcode` of a request that has succeeded.
DONE = {Op.SEND: 0, Op.SEND_IMM: 0, Op.WRITE: 1, Op.WRITE_IMM: 1, Op.READ: 2, Op.COMPARE_SWAP: 3, Op.FETCH_ADD: 4}
RECEIVED, RECEIVED_WITH_IMM = 128, 129
WITH_GRH, WITH_IMM = 1, 2


class Status(IntEnum):
    """`enum ibv_wc_status`."""

    SUCCESS = 0
    LOCAL_LENGTH = 1
    LOCAL_OPERATION = 2
    LOCAL_PROTECTION = 4
    FLUSHED = 5
    REMOTE_INVALID = 9
    REMOTE_ACCESS = 10
    REMOTE_OPERATION = 11
    RETRY_EXCEEDED = 12
    RNR_RETRY_EXCEEDED = 13


class Happens(IntEnum):
    """`enum ibv_event_type`."""

    REQUEST_ERROR = 2
    ACCESS_ERROR = 3
    DRAINED = 5
    LAST_TAKEN = 16


REFUSALS = {Status.REMOTE_INVALID: Happens.REQUEST_ERROR, Status.REMOTE_ACCESS: Happens.ACCESS_ERROR}


@dataclass(eq=False, repr=False)
class Region:
    """Registered memory: `start` in the arena, `virtual` its address for peers and for pieces."""

    key: int
    domain: int
    start: int
    length: int
    virtual: int
    access: int


@dataclass
class Receive:
    """A posted receive."""

    work_id: int
    piece: Piece | None

    @property
    def length(self) -> int:
        return 0 if self.piece is None else self.piece.length_bytes


@dataclass(eq=False, repr=False)
class Shared:
    """A shared receive queue."""

    played: SharedQueue
    domain: int
    receives: deque[Receive] = field(default_factory=deque)
    taken: int = 0
    """Receives that a queue pair has taken and that have not completed: their places are not free again."""


@dataclass(eq=False, repr=False)
class Pair:
    """A queue pair. `receives`: its own, or those that it has taken from a shared queue."""

    owner: Owner
    played: QueuePair
    domain: int
    queues: tuple[CompletionQueue, CompletionQueue]
    shared: Shared | None
    signals_all: bool
    access: int = 0
    qkey: int = 0
    peer: Pair | None = None
    state: State = State.RESET
    receives: deque[Receive] = field(default_factory=deque)
    held: list[Send] = field(default_factory=list)
    unfreed: int = 0
    events_raised: int = 0
    is_gone: bool = False

    @property
    def kind(self) -> Kind:
        return self.played.kind


@dataclass(eq=False, repr=False)
class Owner:
    """A client, what it has made, and what is in its memory."""

    client: Client
    memory: bytearray
    domains: list[int] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    queues: list[CompletionQueue] = field(default_factory=list)
    shared: list[Shared] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    handles: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Address handles: domain and host."""
    events: list[tuple[int, int]] = field(default_factory=list)
    """That have to come: cookie and type."""

    def users_of(self, domain: int) -> int:
        own = (*self.regions, *self.shared, *self.pairs)
        return sum(each.domain == domain for each in own) + sum(of == domain for of, _ in self.handles.values())

    def place(self, domain: int, piece: Piece, writes: bool) -> int | None:
        """Return where a piece lies in the arena; None if it is not registered so."""
        found = next((each for each in self.regions if each.key == piece.key and each.domain == domain), None)
        if found is None or (writes and not found.access & LOCAL_WRITE):
            return None
        return _inside(found, piece.address, piece.length_bytes)

    def remote_place(self, domain: int, key: int, address: int, length: int, access: int) -> int | None:
        """The same of what a peer names."""
        found = next((each for each in self.regions if each.key == key and each.domain == domain), None)
        return None if found is None or not found.access & access else _inside(found, address, length)


def _inside(region: Region, address: int, length: int) -> int | None:
    offset = address - region.virtual
    return region.start + offset if offset >= 0 and offset + length <= region.length else None


def _chunks(length: int) -> Iterator[tuple[int, int, bool]]:
    """Yield begin and end of each packet of a message, and whether it is the last one."""
    packets = max(1, -(-length // MTU_BYTES))
    for number in range(packets):
        yield number * MTU_BYTES, min(length, (number + 1) * MTU_BYTES), number + 1 == packets


Expected = tuple[int, ...]
"""Of a completion of a send: work ID, status, places given back; of a success then opcode, and length if it reads. Of a
receive: work ID, status; of a success then opcode, length, immediate, sender's queue pair, flags."""
Which = tuple[str, int, bool]
"""A host, the number of a queue pair there, and whether it is about receives."""


class Model:
    """What has to happen: completions by queue pair, events by client, changes of memory."""

    def __init__(self) -> None:
        self.owners: dict[str, Owner] = {}
        self.completions: dict[Which, list[Expected]] = {}
        self.unspecified: list[tuple[Owner, int, int]] = []

    # ---- what comes out

    def _complete(self, pair: Pair, is_receive: bool, *values: int) -> None:
        which = pair.owner.client.host, pair.played.number, is_receive
        self.completions.setdefault(which, []).append(values)

    def _end_send(self, pair: Pair, send: Send, status: Status, *values: int) -> None:
        self._complete(pair, False, send.work_id, status, pair.unfreed + 1, *values)
        pair.unfreed = 0

    def raise_event(self, pair: Pair, event: Happens) -> None:
        """Have the pair's client told of an event."""
        pair.events_raised += 1
        pair.owner.events.append((pair.played.cookie, event))

    def fail(self, pair: Pair) -> None:
        """Everything that is posted is flushed."""
        if pair.state == State.ERR:
            return
        pair.state = State.ERR
        if pair.shared is not None:
            self.raise_event(pair, Happens.LAST_TAKEN)
        while pair.receives:
            self._end_receive(pair, Status.FLUSHED)
        held, pair.held = pair.held, []
        for each in held:
            self._end_send(pair, each, Status.FLUSHED)

    def _end_receive(self, pair: Pair, status: Status, *values: int) -> None:
        receive = pair.receives.popleft()
        if pair.shared is not None:
            pair.shared.taken -= 1
        self._complete(pair, True, receive.work_id, status, *values)

    def _refuse(self, pair: Pair, status: Status) -> Status:
        self.raise_event(pair, REFUSALS[status])
        self.fail(pair)
        return status

    def forget(self, pair: Pair) -> None:
        """Nothing of it comes out any more."""
        pair.receives.clear()
        pair.held.clear()
        pair.unfreed = 0
        pair.state = State.RESET

    # ---- receives

    def post_receive(self, pair: Pair, receive: Receive) -> None:
        if pair.state == State.ERR:
            self._complete(pair, True, receive.work_id, Status.FLUSHED)
        else:
            pair.receives.append(receive)

    def _has_receive(self, pair: Pair) -> bool:
        if not pair.receives and pair.shared is not None and pair.shared.receives:
            pair.receives.append(pair.shared.receives.popleft())
            pair.shared.taken += 1
        return bool(pair.receives)

    # ---- requests

    def execute(self, pair: Pair, sends: Sequence[Send]) -> None:
        for send in sends:
            if pair.state == State.SQD:
                pair.held.append(send)
            elif pair.state == State.ERR:
                self._end_send(pair, send, Status.FLUSHED)
            else:
                self._execute(pair, send)

    def _execute(self, pair: Pair, send: Send) -> None:
        data = self._data_of(pair, send)
        if isinstance(data, Status):
            status = data
        elif pair.kind == Kind.UD:
            status = self._datagram(pair, send, data)
        else:
            status = self._carry(pair, send, data)
        if status != Status.SUCCESS:
            self._end_send(pair, send, status)
            self.fail(pair)
        elif pair.signals_all or send.flags & SIGNALED:
            length = len(data) if send.opcode in READS else 0
            self._end_send(pair, send, status, DONE[Op(send.opcode)], length)
        else:
            pair.unfreed += 1

    def _data_of(self, pair: Pair, send: Send) -> bytes | Status:
        """Return what a request sends, zeros of the length of one that reads, or how it fails at once."""
        carried = {Kind.RC: tuple(Op), Kind.UC: (*SENDS, *WRITES), Kind.UD: SENDS}[pair.kind]
        if send.opcode not in carried:
            return Status.LOCAL_OPERATION
        reads = send.opcode in READS
        if send.inline is not None:
            return Status.LOCAL_LENGTH if reads else send.inline
        data = b""
        for piece in send.pieces:
            at = pair.owner.place(pair.domain, piece, reads) if piece.length_bytes else 0
            if at is None:
                return Status.LOCAL_PROTECTION
            data += bytes(pair.owner.memory[at : at + piece.length_bytes])
        return Status.LOCAL_LENGTH if send.opcode in ATOMICS and len(data) != 8 else data

    def _carry(self, pair: Pair, send: Send, data: bytes) -> Status:
        peer = pair.peer
        if peer is None or peer.peer is not pair or peer.state not in RECEIVING:
            return Status.RETRY_EXCEEDED if pair.kind == Kind.RC else Status.SUCCESS
        if send.opcode in SENDS:
            status = self._take_send(pair, peer, send, data)
        elif send.opcode in WRITES:
            status = self._take_write(peer, send, data)
        else:
            return self._take_read(pair, peer, send, len(data))
        return status if pair.kind == Kind.RC else Status.SUCCESS

    def _take_send(self, pair: Pair, peer: Pair, send: Send, data: bytes) -> Status:
        if not self._has_receive(peer):
            return Status.RNR_RETRY_EXCEEDED
        receive = peer.receives[0]
        for begin, end, _ in _chunks(len(data)):
            if end > receive.length:
                if pair.kind == Kind.UC:
                    return Status.SUCCESS  # dropped; the receive is the next message's
                self._end_receive(peer, Status.LOCAL_LENGTH)
                self.fail(peer)
                return Status.REMOTE_INVALID
            if end > begin and not self._store(peer, receive, begin, data[begin:end]):
                self._end_receive(peer, Status.LOCAL_PROTECTION)
                self.fail(peer)
                return Status.REMOTE_OPERATION
        immediate = send.opcode in IMMEDIATE
        self._end_receive(
            peer,
            Status.SUCCESS,
            RECEIVED,
            len(data),
            send.immediate if immediate else 0,
            0,
            WITH_IMM if immediate else 0,
        )
        return Status.SUCCESS

    def _store(self, pair: Pair, receive: Receive, offset: int, data: bytes) -> bool:
        assert receive.piece is not None
        at = pair.owner.place(pair.domain, receive.piece, True)
        if at is None:
            return False
        pair.owner.memory[at + offset : at + offset + len(data)] = data
        return True

    def _take_write(self, peer: Pair, send: Send, data: bytes) -> Status:
        is_reliable, immediate = peer.kind == Kind.RC, send.opcode in IMMEDIATE
        for begin, end, is_last in _chunks(len(data)):
            if is_reliable and is_last and immediate and not self._has_receive(peer):
                return Status.RNR_RETRY_EXCEEDED
            if begin == 0:
                if not peer.access & Access.REMOTE_WRITE:
                    return self._refuse(peer, Status.REMOTE_INVALID) if is_reliable else Status.SUCCESS
                at = peer.owner.remote_place(
                    peer.domain, send.remote_key, send.remote_address, len(data), Access.REMOTE_WRITE
                )
                if data and at is None:
                    return self._refuse(peer, Status.REMOTE_ACCESS) if is_reliable else Status.SUCCESS
            if data:
                assert at is not None
                peer.owner.memory[at + begin : at + end] = data[begin:end]
        if immediate and self._has_receive(peer):
            self._end_receive(peer, Status.SUCCESS, RECEIVED_WITH_IMM, len(data), send.immediate, 0, WITH_IMM)
        return Status.SUCCESS

    def _take_read(self, pair: Pair, peer: Pair, send: Send, length: int) -> Status:
        atomic = send.opcode in ATOMICS
        needed = Access.REMOTE_ATOMIC if atomic else Access.REMOTE_READ
        if not peer.access & needed or (atomic and send.remote_address % 8):
            return self._refuse(peer, Status.REMOTE_INVALID)
        at = peer.owner.remote_place(peer.domain, send.remote_key, send.remote_address, length, needed)
        if at is None and length:
            return self._refuse(peer, Status.REMOTE_ACCESS)
        if at is None:
            return Status.SUCCESS
        found = bytes(peer.owner.memory[at : at + length])
        if atomic:
            before = int.from_bytes(found, "little")
            after = (before + send.compare_or_add) % (1 << 64)
            if send.opcode == Op.COMPARE_SWAP:
                after = send.swap if before == send.compare_or_add else before
            peer.owner.memory[at : at + 8] = after.to_bytes(8, "little")
        for piece in send.pieces:
            if not piece.length_bytes:
                continue
            to = pair.owner.place(pair.domain, piece, True)
            assert to is not None
            pair.owner.memory[to : to + piece.length_bytes] = found[: piece.length_bytes]
            found = found[piece.length_bytes :]
        return Status.SUCCESS

    def _datagram(self, pair: Pair, send: Send, data: bytes) -> Status:
        domain, host = pair.owner.handles.get(send.address_handle, (0, ""))
        if domain != pair.domain:
            return Status.LOCAL_OPERATION
        if len(data) > MTU_BYTES:
            return Status.LOCAL_LENGTH
        receivers = [
            each
            for owner in self.owners.values()
            for each in owner.pairs
            if owner.client.host == host and each.played.number == send.remote_number
        ]
        if not receivers or receivers[0].kind != Kind.UD or receivers[0].state not in RECEIVING:
            return Status.SUCCESS
        (receiver,) = receivers
        if receiver.qkey != send.remote_qkey or not self._has_receive(receiver):
            return Status.SUCCESS
        receive = receiver.receives[0]
        if receive.length < GRH_BYTES + len(data):
            return Status.SUCCESS
        assert receive.piece is not None
        at = receiver.owner.place(receiver.domain, receive.piece, True)
        if at is None:
            self._end_receive(receiver, Status.LOCAL_PROTECTION)
            self.fail(receiver)
            return Status.SUCCESS
        self.unspecified.append((receiver.owner, at, GRH_BYTES))
        receiver.owner.memory[at + GRH_BYTES : at + GRH_BYTES + len(data)] = data
        immediate = send.opcode in IMMEDIATE
        self._end_receive(
            receiver,
            Status.SUCCESS,
            RECEIVED,
            GRH_BYTES + len(data),
            send.immediate if immediate else 0,
            pair.played.number,
            WITH_GRH | (WITH_IMM if immediate else 0),
        )
        return Status.SUCCESS


Draw = Callable[[st.SearchStrategy[Any]], Any]
SEVERAL = st.integers(1, 4)
RARELY = st.integers(0, 15).map(lambda number: number == 11)
LENGTHS = st.sampled_from((0, 1, 7, 8, 100, 255, 256, 257, 512, 700))
ACCESSES = st.sampled_from((EVERYTHING, EVERYTHING, EVERYTHING, 0, 1, 4, 5, 7, 15, 2, 8))
QKEYS = st.sampled_from((0x11, 0x22))


class Clients(RuleBasedStateMachine):
    """Whatever clients do to their NICs."""

    def __init__(self) -> None:
        super().__init__()
        self.nics = Nics()
        self.model = Model()
        self.work_ids = 0
        self.before = _shared_memories()

    @initialize()
    def begin(self) -> None:
        self.model.owners = {name: self._new_owner(name) for name in ("a1", "a2", "b1")}
        for kind, names in (
            (Kind.RC, ("a1", "b1")),
            (Kind.RC, ("a1", "a2")),
            (Kind.RC, ("a2", "b1")),
            (Kind.UC, ("a2", "b1")),
        ):
            one, other = (self._new_pair(self.model.owners[name], kind, is_shared="a2" in names) for name in names)
            self._connect(lambda _: EVERYTHING, one, other)
        for owner in self.model.owners.values():
            self._open(self._new_pair(owner, Kind.UD), 0x11 if owner is self.model.owners["a1"] else 0x22)
            for host in "ab":
                owner.handles[owner.client.address_handle(owner.domains[0], host)] = (owner.domains[0], host)

    def _new_owner(self, name: str) -> Owner:
        client = Client(self.nics, name[0], ARENA_BYTES)
        client.arena[:] = bytes((7 * number + ord(name[1]) + ord(name[0])) % 251 for number in range(ARENA_BYTES))
        owner = Owner(client, bytearray(client.arena[:]))
        owner.domains.append(client.value("create_domain"))
        owner.queues.append(client.completion_queue())
        owner.shared.append(Shared(client.shared_queue(owner.domains[0]), owner.domains[0]))
        for start in (64, 2048):
            self._add_region(owner, owner.domains[0], start, 1500, 0, EVERYTHING)
        return owner

    def teardown(self) -> None:
        for owner in self.model.owners.values():
            owner.client.die()
        self.model.owners = {}
        self.nics.close()

    # ---- what is drawn

    def _owner(self, draw: Draw) -> Owner:
        return self.model.owners[draw(st.sampled_from(sorted(self.model.owners)))]

    def _pair(self, draw: Draw, *states: State) -> Pair | None:
        found = [
            each for owner in self.model.owners.values() for each in owner.pairs if not states or each.state in states
        ]
        return draw(st.sampled_from(found)) if found else None

    def _work_id(self) -> int:
        self.work_ids += 1
        return self.work_ids

    def _piece(self, draw: Draw, owner: Owner, domain: int, length: int) -> Piece:
        """A piece of a region, mostly of one that fits."""
        fitting = [each for each in owner.regions if each.domain == domain and each.length >= length]
        region = draw(st.sampled_from(fitting or owner.regions)) if fitting or owner.regions else None
        wrong = draw(st.sampled_from(("beyond", "key", "before", "any", "none"))) if draw(RARELY) else ""
        if wrong == "any":
            every = [each for other in self.model.owners.values() for each in other.regions]
            region = draw(st.sampled_from(every)) if every else None
        if region is None or wrong == "none":
            return Piece(owner.client.base, length, 0)
        offset = draw(st.integers(0, max(0, region.length - length)))
        if wrong == "beyond":
            offset = region.length - length + 1
        elif wrong == "before":
            offset = -1
        return Piece(region.virtual + offset, length, region.key + (1000 if wrong == "key" else 0))

    # ---- objects

    def _make_domain(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if len(owner.domains) < MOST["domains"]:
            owner.domains.append(owner.client.value("create_domain"))

    def _end_domain(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if not owner.domains:
            return
        domain = draw(st.sampled_from(owner.domains))
        busy = errno.EBUSY if owner.users_of(domain) else 0
        if self._asks(owner, busy, "destroy_domain", domain=domain) is not None:
            owner.domains.remove(domain)

    @staticmethod
    def _asks(owner: Owner, error: int, name: str, **fields: int) -> dict[str, int] | None:
        """Ask for something that has to be refused with an errno, or done if that is 0: then return the answer."""
        answer, found = None, 0
        try:
            answer = dict(owner.client.ask(name, **fields)[0])
        except OSError as refused:
            found = refused.errno
        assert found == error, (name, fields, errno.errorcode.get(found or 0))
        return answer

    def _register(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if not owner.domains or len(owner.regions) >= MOST["regions"]:
            return
        start = draw(st.integers(0, ARENA_BYTES - 1))
        length = draw(st.integers(0, ARENA_BYTES - start))
        shift = draw(st.sampled_from((0, 1 << 40, -4096)))
        domain = draw(st.sampled_from(owner.domains))
        self._add_region(owner, domain, start, length, shift, draw(ACCESSES))

    def _add_region(self, owner: Owner, domain: int, start: int, length: int, shift: int, access: int) -> None:
        address = owner.client.base + start
        remote_writes = access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)
        made = self._asks(
            owner,
            errno.EINVAL if remote_writes and not access & LOCAL_WRITE else 0,
            "register_memory",
            domain=domain,
            address=address,
            length_bytes=length,
            virtual_address=address + shift,
            access=access,
        )
        if made is not None:
            owner.regions.append(Region(made["key"], domain, start, length, address + shift, access))

    def _register_again(self, draw: Draw) -> None:
        """Change a region's rights and domain."""
        owner = self._owner(draw)
        if not owner.regions or not owner.domains:
            return
        region = draw(st.sampled_from(owner.regions))
        domain, access = draw(st.sampled_from(owner.domains)), draw(ACCESSES)
        remote_writes = access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)
        error = errno.EINVAL if remote_writes and not access & LOCAL_WRITE else 0
        changes = Changes.DOMAIN | Changes.ACCESS
        if (
            self._asks(owner, error, "register_again", key=region.key, changes=changes, domain=domain, access=access)
            is not None
        ):
            region.domain, region.access = domain, access

    def _deregister(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if len(owner.regions) > 1:
            region = draw(st.sampled_from(owner.regions))
            self._asks(owner, 0, "deregister_memory", key=region.key)
            owner.regions.remove(region)

    def _name_what_is_not_there(self, draw: Draw) -> None:
        """Others' objects are as those that are not there: handles are a client's own."""
        owner = self._owner(draw)
        names = ("destroy_domain", "deregister_memory", "destroy_completion_queue", "destroy_queue_pair")
        name = draw(st.sampled_from((*names, "destroy_shared_queue", "destroy_address_handle")))
        handle = draw(st.sampled_from((0, 60000, (1 << 32) - 1, 1 << 32)))
        kind = next(kind for kind in KINDS if kind.name == name)
        self._asks(owner, errno.EINVAL, name, **{kind.question[0]: handle})
        others = [each for other in self.model.owners.values() if other is not owner for each in other.regions]
        own = {each.key for each in owner.regions}
        strange = next((each.key for each in others if each.key not in own), 0)
        self._asks(owner, errno.EINVAL, "deregister_memory", key=strange)

    def _make_queue(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if len(owner.queues) < MOST["queues"]:
            owner.queues.append(owner.client.completion_queue())

    def _end_queue(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if len(owner.queues) < 2:
            return
        queue = draw(st.sampled_from(owner.queues))
        busy = errno.EBUSY if any(queue in each.queues for each in owner.pairs) else 0
        if self._asks(owner, busy, "destroy_completion_queue", queue=queue.handle) is not None:
            queue.memory.close()
            owner.queues.remove(queue)

    def _make_shared(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if owner.domains and len(owner.shared) < MOST["shared"]:
            domain = draw(st.sampled_from(owner.domains))
            owner.shared.append(Shared(owner.client.shared_queue(domain), domain))

    def _end_shared(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if not owner.shared:
            return
        shared = draw(st.sampled_from(owner.shared))
        busy = errno.EBUSY if any(each.shared is shared for each in owner.pairs) else 0
        if self._asks(owner, busy, "destroy_shared_queue", queue=shared.played.handle) is not None:
            shared.played.receives.memory.close()
            owner.shared.remove(shared)

    def _make_address_handle(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if owner.domains and len(owner.handles) < MOST["handles"]:
            domain, host = draw(st.sampled_from(owner.domains)), draw(st.sampled_from("ab"))
            owner.handles[owner.client.address_handle(domain, host)] = (domain, host)

    def _end_address_handle(self, draw: Draw) -> None:
        owner = self._owner(draw)
        if owner.handles:
            handle = draw(st.sampled_from(sorted(owner.handles)))
            self._asks(owner, 0, "destroy_address_handle", handle=handle)
            del owner.handles[handle]

    # ---- queue pairs

    def _new_pair(self, owner: Owner, kind: Kind, *, is_shared: bool = False) -> Pair:
        """Return one of the client's first objects."""
        domain, queue = owner.domains[0], owner.queues[0]
        shared = owner.shared[0] if is_shared else None
        return self._make_pair_of(owner, kind, domain, (queue, queue), shared, signals_all=False)

    def _make_pair(self, draw: Draw, owner: Owner, kind: Kind) -> Pair | None:
        if not owner.domains or not owner.queues or len(owner.pairs) >= MOST["pairs"]:
            return None
        domain = draw(st.sampled_from(owner.domains))
        queues = draw(st.sampled_from(owner.queues)), draw(st.sampled_from(owner.queues))
        shared = draw(st.sampled_from(owner.shared)) if owner.shared and draw(st.booleans()) else None
        return self._make_pair_of(owner, kind, domain, queues, shared, signals_all=draw(st.booleans()))

    @staticmethod
    def _make_pair_of(
        owner: Owner,
        kind: Kind,
        domain: int,
        queues: tuple[CompletionQueue, CompletionQueue],
        shared: Shared | None,
        *,
        signals_all: bool,
    ) -> Pair:
        played = owner.client.queue_pair(
            domain,
            kind,
            *queues,
            shared_queue=0 if shared is None else shared.played.handle,
            signals_all=signals_all,
        )
        made = Pair(owner, played, domain, queues, shared, signals_all)
        owner.pairs.append(made)
        return made

    def _connect(self, draw: Draw, *pairs: Pair) -> None:
        for own, peer in (pairs, pairs[::-1]):
            own.peer, own.access = peer, draw(ACCESSES) & ~LOCAL_WRITE
            own.owner.client.connect(own.played, peer.owner.client.host, peer.played.number, own.access)
            own.state = State.RTS

    def _make_connection(self, draw: Draw) -> None:
        kind = draw(st.sampled_from((Kind.RC, Kind.RC, Kind.UC)))
        names = draw(st.permutations(sorted(self.model.owners)))[:2]
        pairs = [self._make_pair(draw, self.model.owners[name], kind) for name in names]
        if None not in pairs:
            self._connect(draw, *(each for each in pairs if each is not None))

    def _connect_again(self, draw: Draw) -> None:
        """Connect two queue pairs that have been reset, or were never connected, of whatever former peers."""
        one = self._pair(draw, State.RESET)
        if one is None or one.kind == Kind.UD:
            return
        others = [
            each
            for owner in self.model.owners.values()
            for each in owner.pairs
            if owner is not one.owner and each.state == State.RESET and each.kind == one.kind
        ]
        if others:
            self._connect(draw, one, draw(st.sampled_from(others)))

    def _make_datagrams(self, draw: Draw) -> None:
        pair = self._make_pair(draw, self._owner(draw), Kind.UD)
        if pair is not None:
            self._open(pair, draw(QKEYS))

    @staticmethod
    def _open(pair: Pair, qkey: int) -> None:
        pair.owner.client.open_datagrams(pair.played, qkey)
        pair.state, pair.qkey = State.RTS, qkey

    def _end_pair(self, draw: Draw) -> None:
        pair = self._pair(draw)
        if pair is None:
            return
        answer = self._asks(pair.owner, 0, "destroy_queue_pair", queue_pair=pair.played.handle)
        assert answer == {"asynchronous_events": pair.events_raised}
        self.model.forget(pair)
        pair.is_gone = True
        pair.played.sends.memory.close()
        pair.owner.pairs.remove(pair)

    def _reset(self, draw: Draw) -> None:
        pair = self._pair(draw)
        if pair is not None:
            self._reset_pair(pair)

    def _reset_pair(self, pair: Pair) -> None:
        pair.owner.client.set_state(pair.played, State.RESET)
        self.model.forget(pair)

    def _give_up(self, draw: Draw) -> None:
        """To ERR."""
        pair = self._pair(draw, State.RTS, State.SQD)
        if pair is not None:
            pair.owner.client.set_state(pair.played, State.ERR)
            self.model.fail(pair)

    def _drain(self, draw: Draw) -> None:
        pair = self._pair(draw, State.RTS)
        if pair is None:
            return
        notifies = draw(st.booleans())
        pair.owner.client.set_state(pair.played, State.SQD, notifies=notifies)
        pair.state = State.SQD
        if notifies:
            self.model.raise_event(pair, Happens.DRAINED)

    def _go_on(self, draw: Draw) -> None:
        pair = self._pair(draw, State.SQD)
        if pair is not None:
            pair.owner.client.set_state(pair.played, State.RTS)
            pair.state = State.RTS
            held, pair.held = pair.held, []
            self.model.execute(pair, held)

    # ---- requests

    def _post_receives(self, draw: Draw, pair: Pair) -> None:
        if pair.state == State.RESET:
            return
        for _ in range(draw(SEVERAL)):
            length = draw(LENGTHS) + (GRH_BYTES if pair.kind == Kind.UD else 0)
            piece = None if draw(RARELY) else self._piece(draw, pair.owner, pair.domain, length)
            receive = Receive(self._work_id(), piece)
            if pair.shared is not None:
                if len(pair.shared.receives) + pair.shared.taken < MOST["receives"]:
                    pair.owner.client.post_receive(pair.shared.played, receive.work_id, piece)
                    pair.shared.receives.append(receive)
            elif len(pair.receives) < MOST["receives"]:
                pair.owner.client.post_receive(pair.played, receive.work_id, piece)
                self.model.post_receive(pair, receive)

    def _post_sends(self, draw: Draw, pair: Pair) -> None:
        """Post several at once, of which one that fails flushes those after it."""
        several = draw(SEVERAL)
        if len(pair.held) > MOST["receives"] - several:
            return
        # A datagram to the same client changes memory that the next one may be sent from.
        sends = [self._send(draw, pair) for _ in range(1 if pair.kind == Kind.UD else several)]
        for each in sends[1:]:
            # What comes after a READ may overwrite what it reads, or send what it has written.
            each.flags |= FENCE
        pair.owner.client.post_send(pair.played, *sends)
        self.model.execute(pair, sends)

    def _send(self, draw: Draw, pair: Pair) -> Send:
        usual = {Kind.RC: tuple(Op), Kind.UC: (*WRITES, *SENDS), Kind.UD: SENDS}[pair.kind]
        op = draw(st.sampled_from(tuple(Op) if draw(RARELY) else usual))
        total = 8 if op in ATOMICS and not draw(RARELY) else draw(LENGTHS)
        cuts = sorted(draw(st.lists(st.integers(0, total), max_size=2)))
        lengths = [end - begin for begin, end in zip([0, *cuts], [*cuts, total], strict=True)]
        flags = draw(st.sampled_from((0, SIGNALED, SIGNALED, SIGNALED | SOLICITED)))
        send = Send(self._work_id(), op, flags=flags, immediate=draw(st.integers(0, 0xFFFFFFFF)))
        if total <= INLINE_BYTES and draw(st.booleans()) and (op not in READS or draw(RARELY)):
            send.inline = bytes(range(total))
        else:
            send.pieces = tuple(self._piece(draw, pair.owner, pair.domain, length) for length in lengths)
        if pair.kind == Kind.UD:
            self._aim(draw, pair, send)
        elif op not in SENDS and pair.peer is not None:
            remote = self._piece(draw, pair.peer.owner, pair.peer.domain, total)
            send.remote_key, send.remote_address = remote.key, remote.address
            if op in ATOMICS:
                send.remote_address -= 0 if draw(RARELY) else send.remote_address % 8
                send.compare_or_add, send.swap = draw(st.integers(0, (1 << 64) - 1)), 0x0123456789ABCDEF
        return send

    def _aim(self, draw: Draw, pair: Pair, send: Send) -> None:
        """Choose where a datagram goes."""
        handles = sorted(pair.owner.handles)
        fitting = [each for each in handles if pair.owner.handles[each][0] == pair.domain]
        choice = handles if draw(RARELY) else fitting
        send.address_handle = draw(st.sampled_from(choice)) if choice else 60000
        _, host = pair.owner.handles.get(send.address_handle, (0, "a"))
        numbers = {
            each.played.number: each.qkey
            for owner in self.model.owners.values()
            if owner.client.host == host
            for each in owner.pairs
            if each.kind == Kind.UD or draw(RARELY)
        }
        send.remote_number = draw(st.sampled_from(sorted(numbers))) if numbers else 77
        send.remote_qkey = draw(QKEYS) if draw(RARELY) else numbers.get(send.remote_number, 0x11)

    # ---- what clients do

    @rule(data=st.data())
    def make_or_end_objects(self, data: st.DataObject) -> None:
        made = (self._make_domain, self._register, self._make_queue, self._make_shared, self._make_address_handle)
        ended = (self._end_domain, self._deregister, self._end_queue, self._end_shared, self._end_address_handle)
        data.draw(st.sampled_from((*made, *ended, self._register_again, self._name_what_is_not_there)))(data.draw)
        self._compare_what_is_there()

    @rule(data=st.data())
    def make_or_end_pairs(self, data: st.DataObject) -> None:
        acts = (self._make_connection, self._connect_again, self._make_datagrams, self._end_pair, self._reset)
        data.draw(st.sampled_from((*acts, self._give_up, self._drain, self._go_on)))(data.draw)
        self._compare_what_is_there()

    def _exchange(self, draw: Draw) -> None:
        """Post some receives, mostly at the end that is sent to, then some requests."""
        states = (State.ERR, State.SQD) if draw(RARELY) else (State.RTS,)
        pair = self._pair(draw, *states)
        if pair is None:
            return
        receiver = self._pair(draw) if pair.peer is None or draw(RARELY) else pair.peer
        if receiver is not None and not receiver.is_gone and not draw(RARELY):
            self._post_receives(draw, receiver)
            self.everything_is_as_it_has_to_be()
        self._post_sends(draw, pair)

    @rule(data=st.data())
    def exchange(self, data: st.DataObject) -> None:
        """What clients do most of the time, and so several times."""
        for _ in range(data.draw(SEVERAL)):
            self._exchange(data.draw)
            self.everything_is_as_it_has_to_be()

    @rule(data=st.data())
    def mend(self, data: st.DataObject) -> None:
        """Bring queue pairs that have failed, or that are drained, back to work."""
        for owner in self.model.owners.values():
            for pair in owner.pairs:
                if pair.state == State.ERR:
                    self._reset_pair(pair)
        for owner in self.model.owners.values():
            for pair in owner.pairs:
                peer = pair.peer
                if pair.state != State.RESET:
                    continue
                if pair.kind == Kind.UD:
                    self._open(pair, data.draw(QKEYS))
                elif peer is not None and peer.peer is pair and peer.state == State.RESET and not peer.is_gone:
                    self._connect(data.draw, pair, peer)

    @rule(data=st.data(), rarely=RARELY)
    def die(self, data: st.DataObject, rarely: bool) -> None:
        """A client goes, with everything that it has; another one comes in its place."""
        if not rarely:
            return
        name = data.draw(st.sampled_from(sorted(self.model.owners)))
        owner = self.model.owners.pop(name)
        owner.client.die()
        for pair in owner.pairs:
            self.model.forget(pair)
            pair.is_gone = True
            pair.played.sends.memory.close()
        for memory in (
            *(each.memory for each in owner.queues),
            *(each.played.receives.memory for each in owner.shared),
        ):
            memory.close()
        self._compare_what_is_there()
        self.model.owners[name] = self._new_owner(name)

    # ---- what has happened

    @invariant()
    def everything_is_as_it_has_to_be(self) -> None:
        self.nics.run()
        assert self.nics.engine.failure is None
        self._compare_completions()
        for owner, at, length in self.model.unspecified:
            owner.memory[at : at + length] = owner.client.arena[at : at + length]
        self.model.unspecified.clear()
        for name, owner in self.model.owners.items():
            assert sorted(owner.client.events()) == sorted(owner.events), name
            owner.events.clear()
            if (found := owner.client.arena[:]) != owner.memory:
                changed = [at for at in range(ARENA_BYTES) if found[at] != owner.memory[at]]
                raise AssertionError(f"{name}: {len(changed)} bytes differ, from {changed[0]} to {changed[-1]}")
            for pair in owner.pairs:
                assert owner.client.state(pair.played) == pair.state, pair.played

    def _compare_completions(self) -> None:
        found: dict[Which, list[Expected]] = {}
        for owner in self.model.owners.values():
            for queue in owner.queues:
                for done in queue.poll():
                    which = owner.client.host, done.queue_pair, done.is_receive
                    found.setdefault(which, []).append(_as_expected(done))
        assert found == self.model.completions
        self.model.completions.clear()

    def _compare_what_is_there(self) -> None:
        """Nothing of what is gone is kept."""
        owners = self.model.owners.values()
        rings = sum(1 + len(each.queues) + len(each.shared) + len(each.pairs) for each in owners)
        assert len(_shared_memories() - self.before) == rings


def _shared_memories() -> set[int]:
    """Return the inodes of memory that this process's NICs share with clients: a ring's or a doorbell page's."""
    found = set()
    for each in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{each}"
        with contextlib.suppress(FileNotFoundError):  # the folder's own
            if "memfd:weft-verbs" in os.readlink(path):
                found.add(os.stat(path).st_ino)
    return found


def _as_expected(done: Completion) -> Expected:
    if done.is_receive:
        assert done.freed == 1
        if done.status:
            return done.work_id, done.status
        return done.work_id, 0, done.opcode, done.length_bytes, done.immediate, done.source_queue_pair, done.flags
    if done.status:
        return done.work_id, done.status, done.freed
    reads = done.opcode in (DONE[Op.READ], DONE[Op.COMPARE_SWAP], DONE[Op.FETCH_ADD])
    return done.work_id, 0, done.freed, done.opcode, done.length_bytes if reads else 0


FEW = settings(max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))


def test_clients_get_what_verbs_promise() -> None:
    run_state_machine_as_test(Clients, settings=FEW)


@pytest.mark.slow
def test_clients_get_what_verbs_promise_in_long_runs() -> None:
    run_state_machine_as_test(Clients, settings=settings(FEW, max_examples=150, stateful_step_count=80))
