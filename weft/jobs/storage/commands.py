"""Commands of clients to storage nodes, as operations of a job: NVMe over Fabrics with RDMA.

A client sends a command capsule. For a read, the node fetches the block from a device, writes it into the client's
memory and sends a response capsule. For a write, the node reads the client's memory by RDMA READ, unless the capsule
held the data, stores the block and responds (NVM Express RDMA Transport Specification 1.0, section 3: capsules travel
by RDMA_SEND, and only the controller issues RDMA_READ and RDMA_WRITE). Capsules and blocks are messages of the job.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.jobs.storage.devices import Device
from weft.quantities.arrays import Integers
from weft.quantities.definitions import Rate, Time
from weft.quantities.section import Section
from weft.quantities.units import PS_PER_S
from weft.traffic.jobs import Job, OperationsBuilder, RankPart

COMMAND_BYTES = 64
"""A submission queue entry, the smallest command capsule (NVM Express Base Specification 2.0, section 4.1)."""
RESPONSE_BYTES = 16
"""A completion queue entry, which is a response capsule (the same, section 4.6)."""
SECTOR_BYTES = 512
"""Unit of block sizes."""
TAGS_PER_COMMAND = 3
_COMMAND_TAG, _DATA_TAG, _RESPONSE_TAG = range(TAGS_PER_COMMAND)
_NONE = -1
_COPY_STREAM = 1
COLUMNS = (
    "client",
    "node",
    "is_read",
    "size_bytes",
    "first",
    "end",
    "other_end",
    "copy",
    "access",
    "transfer",
)


class HostCopy(Section):
    """The copy between a client's host memory, which the network reads and writes, and its accelerator's memory."""

    bandwidth: Rate
    """Bandwidth of copies, which a client makes one at a time."""
    latency: Time = 0
    """Fixed time of each copy."""

    def duration_ps(self, size_bytes: int) -> int:
        """Return how long a copy takes."""
        return self.latency + -(-size_bytes * 8 * PS_PER_S // self.bandwidth)


@dataclass(frozen=True)
class StorageNodes:
    """The nodes that answer commands.

    Attributes:
        count: number of nodes.
        devices: devices of each node.
        device: model of each device.
        in_capsule_bytes: the largest write that carries its data in the command capsule.
        host_copy: clients' copy; None if the network reads and writes accelerators' memory (GPUDirect).
    """

    count: int
    devices: int
    device: Device
    in_capsule_bytes: int = 0
    host_copy: HostCopy | None = None

    def place(self, block: int) -> tuple[int, int, int]:
        """Return a file block's node, device and number on the device; blocks are striped over both."""
        rest, node = divmod(block, self.count)
        number, device = divmod(rest, self.devices)
        return node, device, number


@dataclass(frozen=True)
class Block:
    """The data of a command: `size_bytes` of the block with a number."""

    number: int
    size_bytes: int
    is_read: bool


@dataclass(frozen=True)
class _Waits:
    """Dependencies of an operation on the ends and the starts of others."""

    after: Sequence[int] = ()
    after_start: Sequence[int] = ()


@dataclass(frozen=True, eq=False)
class Commands:
    """Columns of commands. `client` and `node` are ranks of the job; `first` to `transfer` are operations, -1 for none.

    `first` begins a command at the client, `end` and `other_end` end it there; `access` and `transfer` are the device's
    operations at the node.
    """

    client: Integers
    node: Integers
    is_read: Integers
    size_bytes: Integers
    first: Integers
    end: Integers
    other_end: Integers
    copy: Integers
    access: Integers
    transfer: Integers

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(self.client)


@dataclass
class StorageWriter:
    """Writes a storage job: clients are its first ranks, storage nodes its last."""

    clients: int
    nodes: StorageNodes
    builders: list[OperationsBuilder] = field(init=False)
    _rows: array[int] = field(default_factory=lambda: array("q"))

    def __post_init__(self) -> None:
        """Begin an empty program for each rank."""
        self.builders = [OperationsBuilder() for _ in range(self.clients + self.nodes.count)]

    def command(
        self, client: int, block: Block, after: Sequence[int], after_start: Sequence[int] = ()
    ) -> tuple[int, ...]:
        """Add a client's command that follows other operations of the client; return the operations that end it."""
        tag = len(self._rows) // len(COLUMNS) * TAGS_PER_COMMAND
        return (self._read if block.is_read else self._write)(client, block, _Waits(after, after_start), tag)

    def _read(self, client: int, block: Block, waits: _Waits, tag: int) -> tuple[int, ...]:
        node, device, number = self.nodes.place(block.number)
        own, there = self.builders[client], self.builders[self.clients + node]
        first = own.send(node, COMMAND_BYTES, tag + _COMMAND_TAG, **vars(waits), category="command")
        got = there.receive(client, COMMAND_BYTES, tag + _COMMAND_TAG, category="command")
        access = self._access(there, device, number, [got], reads=True)
        transfer = self._transfer(there, device, block.size_bytes, [access], reads=True)
        sent = there.send(client, block.size_bytes, tag + _DATA_TAG, after=[transfer], category="read")
        there.send(
            client,
            RESPONSE_BYTES,
            tag + _RESPONSE_TAG,
            after=[transfer],
            after_start=[sent],
            category="response",
        )
        data = own.receive(node, block.size_bytes, tag + _DATA_TAG, after_start=[first], category="read")
        response = own.receive(node, RESPONSE_BYTES, tag + _RESPONSE_TAG, after_start=[first], category="response")
        copy, ends = _NONE, (data, response)
        if self.nodes.host_copy is not None:
            copy = self._copy(own, self.nodes.host_copy, block.size_bytes, _Waits(ends))
            ends = (copy, copy)
        self._note(client, node, block, first, ends, copy, access, transfer)
        return tuple(dict.fromkeys(ends))

    def _write(self, client: int, block: Block, waits: _Waits, tag: int) -> tuple[int, ...]:
        node, device, number = self.nodes.place(block.number)
        own, there = self.builders[client], self.builders[self.clients + node]
        copy = _NONE
        if self.nodes.host_copy is not None:
            copy = self._copy(own, self.nodes.host_copy, block.size_bytes, waits)
            waits = _Waits([copy])
        is_in_capsule = block.size_bytes <= self.nodes.in_capsule_bytes
        capsule_bytes = COMMAND_BYTES + (block.size_bytes if is_in_capsule else 0)
        command = own.send(node, capsule_bytes, tag + _COMMAND_TAG, **vars(waits), category="command")
        got = there.receive(client, capsule_bytes, tag + _COMMAND_TAG, category="command")
        if not is_in_capsule:
            got = there.read(client, block.size_bytes, after=[got], category="write")
        transfer = self._transfer(there, device, block.size_bytes, [got], reads=False)
        access = self._access(there, device, number, [transfer], reads=False)
        there.send(client, RESPONSE_BYTES, tag + _RESPONSE_TAG, after=[access], category="response")
        response = own.receive(node, RESPONSE_BYTES, tag + _RESPONSE_TAG, after_start=[command], category="response")
        first = command if copy == _NONE else copy
        self._note(client, node, block, first, (response, response), copy, access, transfer)
        return (response,)

    def _stream(self, device: int, *, reads: bool) -> int:
        """Return the stream of a device's interface; the streams of its channels follow."""
        own = self.nodes.device
        streams = own.read.channels + own.write.channels + 2
        return device * streams + (0 if reads else own.read.channels + 1)

    def _access(self, there: OperationsBuilder, device: int, number: int, after: Sequence[int], *, reads: bool) -> int:
        accesses = self.nodes.device.accesses(reads=reads)
        stream = self._stream(device, reads=reads) + 1 + number % accesses.channels
        return there.compute(accesses.latency, stream=stream, after=after, category="device access")

    def _transfer(
        self, there: OperationsBuilder, device: int, size_bytes: int, after: Sequence[int], *, reads: bool
    ) -> int:
        duration_ps = self.nodes.device.accesses(reads=reads).transfer_ps(size_bytes)
        stream = self._stream(device, reads=reads)
        return there.compute(duration_ps, stream=stream, after=after, category="device transfer")

    @staticmethod
    def _copy(own: OperationsBuilder, copy: HostCopy, size_bytes: int, waits: _Waits) -> int:
        return own.compute(copy.duration_ps(size_bytes), stream=_COPY_STREAM, **vars(waits), category="host copy")

    def _note(
        self,
        client: int,
        node: int,
        block: Block,
        first: int,
        ends: tuple[int, int],
        copy: int,
        access: int,
        transfer: int,
    ) -> None:
        self._rows.extend(
            (
                client,
                self.clients + node,
                block.is_read,
                block.size_bytes,
                first,
                *ends,
                copy,
                access,
                transfer,
            )
        )

    def finished(self, name: str) -> tuple[Job, Commands]:
        """Return the job and its commands."""
        nodes = tuple(range(self.clients, len(self.builders)))
        clients = tuple(range(self.clients))
        parts = tuple(
            RankPart(builder.build(), nodes if rank < self.clients else clients)
            for rank, builder in enumerate(self.builders)
        )
        rows = np.array(self._rows, np.int64).reshape(-1, len(COLUMNS)).T
        return Job(name, parts), Commands(*(column.copy() for column in rows))
