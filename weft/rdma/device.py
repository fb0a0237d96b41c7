"""A host's adapter, as its program sees it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from weft.rdma.connecting import CONNECT, ConnectionSettings, Endpoint, Listener
from weft.rdma.errors import VerbsError
from weft.rdma.out_of_band import Inbox, OutOfBand, OutOfBandMessage, checked_value
from weft.rdma.reports import Operation, ProgramReport
from weft.rdma.work import WC
from weft.visibility import internal

if TYPE_CHECKING:
    from weft.engine import CompletionQueue, Nic
    from weft.engine._core import WritingQueuePair
    from weft.rdma.queue_pair import QP

_FIRST_ADDRESS = 1 << 32
_PAGE_BYTES = 4096
_MOST_OPERATIONS = 1 << 20


class DevicePort(Protocol):
    """Gives a device what it needs of its host."""

    nic: Nic
    completions: CompletionQueue
    port_count: int
    transport: str
    """The scenario's key that chooses the transport, and its value."""
    operations: frozenset[str]
    """Operations that the transport carries, by the names of `weft.rdma.work`."""
    largest_send_bytes: int | None
    """The longest SEND that it carries; None: as long as any message."""

    def address(self, port_num: int) -> str:
        """Return the IP address of a port, counted from 1."""

    def more_addresses(self, port_num: int) -> dict[int, str]:
        """Return the addresses of the other ports that a queue pair of a port uses, too."""

    def line_rate_bps(self, port_num: int) -> int:
        """Return a port's rate."""

    def open_queue_pair(
        self, qp_num: int, port_num: int, peer: str, psn: int, remote: Endpoint, settings: ConnectionSettings
    ) -> WritingQueuePair:
        """Make a queue pair; its completions come to `completions`."""

    def close_queue_pair(self, queue_pair: WritingQueuePair) -> None:
        """Destroy one."""


class DeviceClock(Protocol):
    """The clock of a program."""

    def now_ps(self) -> int:
        """Return the emulated time."""

    async def sleep_ps(self, duration_ps: int) -> None:
        """Wait for that long, in emulated time."""


class Device:
    """The adapter of the host that a program runs on (in libibverbs: a context). Programs are given theirs.

    `name` is the host's name, `hosts` are the names of all hosts with a program, `seed` is the scenario's.
    """

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        port: DevicePort,
        clock: DeviceClock,
        out_of_band: OutOfBand,
        *,
        first_queue_pair: int,
        seed: int = 0,
    ) -> None:
        self.name, self.hosts, self.port, self.seed = name, tuple(hosts), port, seed
        self.inbox = Inbox()
        self.report_so_far = ProgramReport()
        self._clock, self._out_of_band = clock, out_of_band
        self._next_address = _FIRST_ADDRESS
        self._next_queue_pair = first_queue_pair
        self._queue_pairs: dict[int, QP] = {}
        self._has_protection_domain = False
        self._waits: dict[asyncio.Task[Any] | None, list[str]] = {}

    # --- for programs

    @property
    def now_ps(self) -> int:
        """The emulated time."""
        return self._clock.now_ps()

    async def sleep(self, duration_ps: int) -> None:
        """Wait for that long, in emulated time: what computing would take. VerbsError: it is below 0."""
        if duration_ps < 0:
            raise VerbsError(f"a sleep of {duration_ps} ps", valid="0 and more")
        with self.waiting(f"the end of a sleep of {duration_ps} ps"):
            await self._clock.sleep_ps(duration_ps)

    def line_rate_bps(self, port_num: int = 1) -> int:
        """Return a port's rate in bits per second."""
        if not 1 <= port_num <= self.port.port_count:
            raise VerbsError(f"port_num is {port_num}", valid=f"1 to {self.port.port_count}")
        return self.port.line_rate_bps(port_num)

    def listen(self, service: str = "") -> Listener:
        """Return what takes connection requests for a service; those that came before wait for it."""
        return Listener(self, service)

    async def exchange(self, peer: str, value: object = None, topic: str = "") -> Any:
        """Send a value to a host's program, and return the one that it sends by the same topic.

        A value is what JSON can hold. VerbsError: it is not, or no program runs on such a host.
        """
        self.send(peer, f"exchange/{topic}", value)
        with self.waiting(f"{peer} to exchange {topic or 'values'!r}"):
            return (await self.inbox.get(peer, f"exchange/{topic}")).value

    async def rendezvous(self, topic: str = "", value: object = None) -> dict[str, Any]:
        """Wait until the programs of all hosts have come here; returns the value of each, by host."""
        for host in self.hosts:
            if host != self.name:
                self.send(host, f"rendezvous/{topic}", value)
        found = {self.name: checked_value(value)}
        for host in self.hosts:
            if host != self.name:
                with self.waiting(f"{host} to come to the rendezvous {topic!r}"):
                    found[host] = (await self.inbox.get(host, f"rendezvous/{topic}")).value
        return {host: found[host] for host in self.hosts}

    def report(self, name: str, value: float | str) -> None:
        """Have the run's results show a value, a number or a text; a later one of the same name replaces it."""
        self.report_so_far.set_value(name, value)

    def record(self, name: str, x: float, y: float) -> None:
        """Add a point to a series of the run's results."""
        self.report_so_far.add_point(name, x, y)

    # --- for queue pairs and memory

    def send(self, peer: str, topic: str, value: object) -> None:
        """Send a message out of band. VerbsError: no program runs on such a host, or JSON cannot hold the value."""
        if peer not in self.hosts or peer == self.name:
            others = ", ".join(host for host in self.hosts if host != self.name) or "none"
            raise VerbsError(f"no other program runs on {peer!r}", valid=others)
        self._out_of_band.send(OutOfBandMessage(self.name, peer, topic, checked_value(value)))

    @internal
    def deliver(self, message: OutOfBandMessage) -> None:
        """Take a message from another program."""
        self.inbox.put(message, of_any=message.topic.startswith(CONNECT))

    @internal
    def drain(self) -> None:
        """Hand the NIC's completions to their queue pairs."""
        for completion in self.port.completions.poll():
            queue_pair = self._queue_pairs.get(completion["queue_pair"])
            if queue_pair is not None:  # not closed meanwhile
                queue_pair.on_completion(completion)

    @internal
    def soon(self, callback: Callable[[], object]) -> None:
        """Call something when the program waits next."""
        asyncio.get_running_loop().call_soon(callback)

    @internal
    def take_protection_domain(self) -> None:
        """Note that there is a protection domain. VerbsError: there was one."""
        if self._has_protection_domain:
            raise VerbsError("a device has one protection domain: use the one that there is")
        self._has_protection_domain = True

    @internal
    def take_addresses(self, length: int) -> int:
        """Return where a new region's virtual addresses begin: a page, with an unused one before the next region's."""
        address = self._next_address
        self._next_address += (length // _PAGE_BYTES + 2) * _PAGE_BYTES
        return address

    @internal
    def take_queue_pair_number(self) -> int:
        """Return the next queue pair's number."""
        self._next_queue_pair += 1
        return self._next_queue_pair - 1

    @internal
    def initial_psn(self, qp_num: int) -> int:
        """Return a queue pair's first packet sequence number, 24 bits, which repeats with the seed."""
        text = f"{self.seed} {self.name} {qp_num}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=3).digest(), "big")

    @internal
    def add_queue_pair(self, queue_pair: QP) -> None:
        """Have completions reach a queue pair."""
        self._queue_pairs[queue_pair.qp_num] = queue_pair

    @internal
    def open_queue_pair(
        self, queue_pair: QP, peer: str, remote: Endpoint, settings: ConnectionSettings
    ) -> WritingQueuePair:
        """Make the NIC's queue pair."""
        number = queue_pair.qp_num
        return self.port.open_queue_pair(
            number, queue_pair.attributes.port_num, peer, self.initial_psn(number), remote, settings
        )

    @internal
    def close_queue_pair(self, queue_pair: QP, native: WritingQueuePair | None) -> None:
        """Destroy a queue pair, and the NIC's if there is one."""
        self.drain()
        self._queue_pairs.pop(queue_pair.qp_num, None)
        if native is not None:
            self.port.close_queue_pair(native)

    @internal
    def close(self) -> None:
        """Destroy the queue pairs that the program has left, so that they answer nothing any more."""
        for queue_pair in list(self._queue_pairs.values()):
            queue_pair.close()

    @internal
    def require_countable(self) -> None:
        """Raise VerbsError if the program has had as many operations as are counted."""
        if len(self.report_so_far.operations) >= _MOST_OPERATIONS:
            raise VerbsError(f"more than {_MOST_OPERATIONS} operations of one program")

    @internal
    def note_operation(self, opcode: str, completion: WC) -> None:
        """Note a request that has ended, for the results."""
        self.report_so_far.operations.append(
            Operation(
                opcode,
                completion.status.name,
                completion.byte_len,
                completion.posted_ps,
                completion.completed_ps,
            )
        )

    # --- for whoever runs the program

    @internal
    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Note what the present task waits for meanwhile."""
        task = asyncio.current_task()
        waits = self._waits.setdefault(task, [])
        waits.append(what)
        try:
            yield
        finally:
            waits.pop()
            if not waits:
                self._waits.pop(task, None)

    @internal
    def awaited(self) -> dict[asyncio.Task[Any], str]:
        """Return what each of the program's tasks waits for; only tasks that wait for something of the device."""
        return {task: waits[-1] for task, waits in self._waits.items() if task is not None and not task.done()}
