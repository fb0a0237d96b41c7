"""Clients of NICs by verbs without programs: what a provider does is played here, in the process of the test.

Two hosts' NICs are joined by a pair of links in one engine. Its clock is the real one, which clients need, but a
thousand times faster, and it runs only while `Nics.run` is called. So nothing waits, and what happens does not depend
on how fast the machine is. Requests are carried out as if they had come by the socket (`VerbsClient.carry_out`); rings
are filled and emptied in the memory that NIC and client share. A client's memory is this process's own, by
/proc/self/mem.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from weft.engine import Engine, Link
from weft.traffic.attachment import LinkAttachment
from weft.traffic.host import Host
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.verbs.client import VerbsClient
from weft.traffic.verbs.ports import VerbsPorts
from weft.traffic.verbs.protocol import KINDS, MAGIC, VERSION
from weft.traffic.verbs.states import Attribute, Kind, State

US_PS, MS_PS = 10**6, 10**9
MTU_BYTES = 256
FASTER = 1000
# struct SendEntry, Piece, CompletionEntry and AsynchronousEvent of engine/verbs/protocol.hpp; a ring's counters stand
# in lines of 64 bytes before it.
_SEND = struct.Struct("=QIIIIQQQIIIIII")
_PIECE = struct.Struct("=QII")
_RECEIVE = struct.Struct("=QII")
_COMPLETION = struct.Struct("=QQ12I")
_EVENT = struct.Struct("=QII")
_COUNTERS_BYTES = 128
_LINE_BYTES = 64

_TO_INIT = Attribute.STATE | Attribute.PKEY_INDEX | Attribute.PORT
_TO_RTR = Attribute.STATE | Attribute.AV | Attribute.PATH_MTU | Attribute.DEST_QPN | Attribute.RQ_PSN
_RC_TO_RTR = _TO_RTR | Attribute.MAX_DEST_RD_ATOMIC | Attribute.MIN_RNR_TIMER
_RC_TO_RTS = Attribute.TIMEOUT | Attribute.RETRY_CNT | Attribute.RNR_RETRY | Attribute.MAX_QP_RD_ATOMIC
# `enum ibv_send_flags`.
FENCE, SIGNALED, SOLICITED = 1, 2, 4


class Completion(NamedTuple):
    """An entry of a completion queue, as far as programs see it."""

    work_id: int
    status: int
    opcode: int
    length_bytes: int
    immediate: int
    queue_pair: int
    source_queue_pair: int
    flags: int
    freed: int
    is_receive: bool


class AsynchronousEvent(NamedTuple):
    """Which object (its cookie), and `enum ibv_event_type`."""

    cookie: int
    type: int


class Piece(NamedTuple):
    """`struct ibv_sge`."""

    address: int
    length_bytes: int
    key: int


@dataclass
class Send:
    """A request as a program posts it; `immediate` in the host's byte order. Inline data stand for pieces."""

    work_id: int
    opcode: int
    pieces: tuple[Piece, ...] = ()
    inline: bytes | None = None
    flags: int = SIGNALED
    immediate: int = 0
    remote_key: int = 0
    remote_address: int = 0
    compare_or_add: int = 0
    swap: int = 0
    address_handle: int = 0
    remote_number: int = 0
    remote_qkey: int = 0

    def packed(self) -> bytes:
        head = _SEND.pack(
            self.work_id,
            self.opcode,
            self.flags,
            socket.htonl(self.immediate),
            self.remote_key,
            self.remote_address,
            self.compare_or_add,
            self.swap,
            len(self.pieces),
            len(self.inline or b""),
            self.address_handle,
            self.remote_number,
            self.remote_qkey,
            self.inline is not None,
        )
        return head + (b"".join(_PIECE.pack(*each) for each in self.pieces) if self.inline is None else self.inline)


class Nics:
    """Hosts a and b, joined by links, and the engine that both are in."""

    def __init__(self) -> None:
        gc.freeze()  # so that close() looks at what has been made since
        self.engine = Engine.real_clock(dilation=1 / FASTER)
        links = {name: Link(self.engine, name=name, delay_ps=US_PS) for name in ("ab", "ba")}
        self.hosts, self.ports = {}, {}
        for rank, (name, out, back) in enumerate((("a", "ab", "ba"), ("b", "ba", "ab"))):
            nic = NicConfig(
                interface=f"{name}-eth0",
                mac=f"02:00:00:00:00:0{rank + 1}",
                ipv4=f"10.0.0.{rank + 1}",
                gateway_mac=f"02:00:00:00:00:0{2 - rank}",
                rate_bps=100 * 10**9,
                base_round_trip_ps=5 * US_PS,
            )
            config = HostConfig(name, rank, 0, (nic,), mtu_bytes=MTU_BYTES, wall_clock_floor_ns=20_000)
            attachment = LinkAttachment(links[out], links[back])
            self.hosts[name] = Host(config, self.engine, lambda _, made=attachment: made)
            self.ports[name] = VerbsPorts(self.hosts[name])

    def run(self, duration_ps: int = 5 * MS_PS) -> None:
        """Let emulated time pass."""
        self.engine.run_for(duration_ps)

    def gid_low(self, name: str) -> int:
        return 0xFFFF << 32 | int(self.ports[name].gids(1)[0])

    def close(self) -> None:
        for host in self.hosts.values():
            host.close()
        self.hosts, self.ports = {}, {}
        del self.engine
        gc.collect()  # hosts' parts know each other
        gc.unfreeze()


class Ring:
    """A ring of work as a client fills it."""

    def __init__(self, memory: mmap.mmap, start: int, entries: int, entry_bytes: int, number: int) -> None:
        self.memory, self._start, self._entries, self._entry_bytes = memory, start, entries, entry_bytes
        self.number, self.posted = number, 0

    def put(self, entry: bytes) -> None:
        assert len(entry) <= self._entry_bytes
        at = self._start + _COUNTERS_BYTES + self.posted % self._entries * self._entry_bytes
        self.memory[at : at + len(entry)] = entry
        self.posted += 1
        struct.pack_into("=I", self.memory, self._start, self.posted & 0xFFFFFFFF)


class CompletionQueue:
    """A completion queue as a client empties it."""

    def __init__(self, handle: int, memory: mmap.mmap, entries: int) -> None:
        self.handle, self.memory, self._entries = handle, memory, entries
        self._consumed = 0

    def poll(self) -> list[Completion]:
        (produced,) = struct.unpack_from("=I", self.memory, 0)
        found = []
        while self._consumed != produced:
            at = _COUNTERS_BYTES + self._consumed % self._entries * _COMPLETION.size
            work_id, _, *others = _COMPLETION.unpack_from(self.memory, at)
            status, opcode, length, immediate, number, source, flags, freed, is_receive = others[:9]
            found.append(
                Completion(
                    work_id,
                    status,
                    opcode,
                    length,
                    socket.ntohl(immediate),
                    number,
                    source,
                    flags,
                    freed,
                    bool(is_receive),
                )
            )
            self._consumed += 1
        struct.pack_into("=I", self.memory, _LINE_BYTES, self._consumed)
        return found


@dataclass
class QueuePair:
    """A queue pair as a client knows it."""

    handle: int
    number: int
    kind: Kind
    cookie: int
    sends: Ring
    receives: Ring


@dataclass
class SharedQueue:
    """A shared receive queue as a client knows it."""

    handle: int
    cookie: int
    receives: Ring


class Client:
    """A process with memory of `arena_bytes`, which uses a host's NIC."""

    def __init__(self, nics: Nics, host: str, arena_bytes: int = 1 << 14) -> None:
        self.nics, self.host = nics, host
        self.arena = mmap.mmap(-1, arena_bytes)
        self.base = self.address_of(self.arena)
        self._native = VerbsClient(nics.hosts[host].nic, nics.ports[host], os.getpid(), os.getuid(), node_guid=1)
        self._kinds = {kind.name: kind for kind in KINDS}
        self._cookies = 0
        _, (page, self._doorbell, self._events) = self.ask("open", magic=MAGIC, version=VERSION)
        self._page = mmap.mmap(page, 0)

    @staticmethod
    def address_of(memory: mmap.mmap) -> int:
        """Return where it is mapped."""
        return ctypes.addressof(ctypes.c_char.from_buffer(memory))

    def ask(self, name: str, **fields: int) -> tuple[Mapping[str, int], list[int]]:
        """Carry out a request; fields that are not given are 0. Raises OSError with the errno of a refusal."""
        kind = self._kinds[name]
        assert set(fields) <= set(kind.question), fields
        answer = self._native.carry_out(name, {each: fields.get(each, 0) for each in kind.question})
        return answer.fields, answer.descriptors

    def value(self, name: str, **fields: int) -> int:
        """Return the first field of an answer."""
        answer, _ = self.ask(name, **fields)
        return next(iter(answer.values()))

    def new_cookie(self) -> int:
        self._cookies += 1
        return self._cookies

    def completion_queue(self, entries: int = 256) -> CompletionQueue:
        answer, (descriptor,) = self.ask("create_completion_queue", entries=entries, cookie=self.new_cookie())
        return CompletionQueue(answer["queue"], mmap.mmap(descriptor, 0), answer["actual_entries"])

    def shared_queue(self, domain: int, requests: int = 16) -> SharedQueue:
        cookie = self.new_cookie()
        answer, (descriptor,) = self.ask(
            "create_shared_queue", domain=domain, max_requests=requests, max_pieces=1, cookie=cookie
        )
        entry_bytes = _RECEIVE.size + _PIECE.size * answer["actual_pieces"]
        ring = Ring(mmap.mmap(descriptor, 0), 0, answer["actual_requests"], entry_bytes, answer["ring"])
        return SharedQueue(answer["queue"], cookie, ring)

    def queue_pair(
        self, domain: int, kind: Kind, sends: CompletionQueue, receives: CompletionQueue, **fields: int
    ) -> QueuePair:
        """Return a queue pair for 16 requests of up to 3 pieces, and 16 receives of one."""
        cookie = self.new_cookie()
        answer, (descriptor,) = self.ask(
            "create_queue_pair",
            domain=domain,
            type=kind,
            send_queue=sends.handle,
            receive_queue=receives.handle,
            max_sends=16,
            max_receives=16,
            max_send_pieces=3,
            max_receive_pieces=1,
            max_inline_bytes=64,
            cookie=cookie,
            **fields,
        )
        memory = mmap.mmap(descriptor, 0)
        handle, entries, entry_bytes = answer["queue_pair"], answer["actual_sends"], answer["send_entry_bytes"]
        after_sends = _COUNTERS_BYTES + entries * entry_bytes
        number = 2 * (handle - 1)
        return QueuePair(
            handle,
            answer["number"],
            kind,
            cookie,
            Ring(memory, 0, entries, entry_bytes, number),
            Ring(memory, after_sends, answer["actual_receives"], _RECEIVE.size + _PIECE.size, number + 1),
        )

    def modify(self, queue_pair: QueuePair, mask: int, **fields: int) -> None:
        self.ask("modify_queue_pair", queue_pair=queue_pair.handle, mask=mask, **fields)

    def set_state(self, queue_pair: QueuePair, state: State, *, notifies: bool | None = None) -> None:
        """Change the state; `notifies`: whether an event says that it is drained."""
        mask = Attribute.STATE if notifies is None else Attribute.STATE | Attribute.EN_SQD_ASYNC_NOTIFY
        self.modify(queue_pair, mask, state=state, tells_drained=bool(notifies))

    def state(self, queue_pair: QueuePair) -> State:
        answer, _ = self.ask("query_queue_pair", queue_pair=queue_pair.handle)
        return State(answer["state"])

    def connect(self, own: QueuePair, host: str, number: int, access: int) -> None:
        """Bring a queue pair of RC or UC from RESET to RTS."""
        self.modify(own, _TO_INIT | Attribute.ACCESS_FLAGS, state=State.INIT, port=1, access=access)
        self.modify(
            own,
            _RC_TO_RTR if own.kind == Kind.RC else _TO_RTR,
            state=State.RTR,
            path_mtu=1,
            remote_number=number,
            max_reads_answered=4,
            rnr_timer=1,
            is_global=1,
            gid_low=self.nics.gid_low(host),
            address_port=1,
        )
        more = _RC_TO_RTS if own.kind == Kind.RC else 0
        fields = {"timeout": 1, "retry_count": 1, "rnr_retry": 1, "max_reads_sent": 4}
        self.modify(own, Attribute.STATE | Attribute.SQ_PSN | more, state=State.RTS, **fields)

    def open_datagrams(self, own: QueuePair, qkey: int) -> None:
        """Bring a queue pair of UD from RESET to RTS."""
        self.modify(own, _TO_INIT | Attribute.QKEY, state=State.INIT, port=1, qkey=qkey)
        self.set_state(own, State.RTR)
        self.modify(own, Attribute.STATE | Attribute.SQ_PSN, state=State.RTS)

    def address_handle(self, domain: int, host: str) -> int:
        return self.value(
            "create_address_handle", domain=domain, is_global=1, gid_low=self.nics.gid_low(host), address_port=1
        )

    def post_send(self, queue_pair: QueuePair, *sends: Send) -> None:
        for each in sends:
            queue_pair.sends.put(each.packed())
        self._ring(queue_pair.sends)

    def post_receive(self, queue: QueuePair | SharedQueue, work_id: int, piece: Piece | None) -> None:
        pieces = b"" if piece is None else _PIECE.pack(*piece)
        queue.receives.put(_RECEIVE.pack(work_id, piece is not None, 0) + pieces)
        self._ring(queue.receives)

    def _ring(self, ring: Ring) -> None:
        at = _LINE_BYTES + ring.number // 64 * 8
        (waiting,) = struct.unpack_from("=Q", self._page, at)
        struct.pack_into("=Q", self._page, at, waiting | 1 << ring.number % 64)
        os.write(self._doorbell, struct.pack("=Q", 1))

    def events(self) -> list[AsynchronousEvent]:
        """Take the asynchronous events that have come."""
        found = []
        with socket.socket(fileno=os.dup(self._events)) as events:
            while True:
                try:
                    cookie, kind, _ = _EVENT.unpack(events.recv(_EVENT.size, socket.MSG_DONTWAIT))
                except BlockingIOError:
                    return found
                found.append(AsynchronousEvent(cookie, kind))

    def die(self) -> None:
        """Be gone, as its host's process sees it."""
        self._native.close()
        self._native = None  # type: ignore[assignment]
        self._page.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        if self._native is not None:
            self.die()


Made = tuple[QueuePair, CompletionQueue, int]
"""A queue pair, its completion queue and its domain."""


def pair_of(one: Client, other: Client, kind: Kind, access: int, domain: int = 0, **fields: int) -> tuple[Made, Made]:
    """Return a queue pair of each, connected with the other's. `domain` and `fields` are the other's; 0: a new one."""
    made = []
    for client, options in ((one, {}), (other, fields)):
        queue = client.completion_queue()
        own = domain if client is other and domain else client.value("create_domain")
        made.append((client.queue_pair(own, kind, queue, queue, **options), queue, own))
    (first, *_), (second, *_) = made
    one.connect(first, other.host, second.number, access)
    other.connect(second, one.host, first.number, access)
    return made[0], made[1]
