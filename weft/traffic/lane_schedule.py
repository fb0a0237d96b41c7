"""One rank's part in a collective, as lanes: short programs with loops that run concurrently.

A lane runs its loops in order. Formulas over the turn and the lane give the chunks to send, receive and reduce at each
turn, so a schedule is as small for many chunks as for few; the engine unrolls it as it runs. A rank without such a
pattern uses a `weft.traffic.schedule_nodes.RankSchedule` instead. The same executor runs both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from weft.engine import _core
from weft.quantities.arrays import Integers
from weft.traffic import schedule_nodes as nodes
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType

WRITE, WAIT, REDUCE, COPY, AGGREGATE, DELAY = ("write", "wait", "reduce", "copy", "aggregate", "delay")
_OF_DATA = (REDUCE, COPY)


class InNetwork(StrEnum):
    """The network's work on elements. Where each rank has its own, they are the ranges of a chunk table."""

    ALL_REDUCE = "all_reduce"
    REDUCE = "reduce"
    BROADCAST = "broadcast"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_GATHER = "all_gather"
    BARRIER = "barrier"


class Formula(NamedTuple):
    """A number: `first`, and so much more at each turn of a loop and for each lane of a block."""

    first: int
    per_turn: int = 0
    per_lane: int = 0


_BY_LANE = Formula(0, 0, 1)


class Chunk(NamedTuple):
    """The chunk of a table with the formula's number, or the lane's piece of it; it has a piece for each lane."""

    table: int
    first: int = 0
    per_turn: int = 0
    per_lane: int = 0
    is_cut: bool = False


class _Send(NamedTuple):
    """A send of a loop: its chunk and the table, its channel, and how many turns and lanes there are."""

    table: ChunkTable
    chunk: Chunk
    channel: Formula
    turns: int
    lanes: int

    def channels_and_elements(self) -> tuple[Integers, Integers]:
        """Return the channel's number and the count of elements of each turn of each lane."""
        turns, lanes = np.arange(self.turns)[:, None], np.arange(self.lanes)[None, :]

        def values(formula: Formula | Chunk) -> Integers:
            return np.asarray(formula.first + formula.per_turn * turns + formula.per_lane * lanes, np.int64)

        elements = self.table.lengths[values(self.chunk) % self.table.count]
        if self.chunk.is_cut:
            elements = elements // self.lanes + (lanes < elements % self.lanes)
        return np.broadcast_to(values(self.channel), elements.shape), elements


class ChunkTable:
    """Ranges of elements by number, modulo how many there are. All ranks can share one."""

    def __init__(self, native: _core.ElementTable, largest: int) -> None:
        self.native, self.count, self.largest = native, len(native), largest

    @classmethod
    def evenly(cls, elements: range, parts: int) -> ChunkTable:
        """Return what `weft.traffic.striping.split_evenly` does, as a formula."""
        native = _core.ElementTable.evenly(elements.start, elements.stop, parts)
        return cls(native, -(-len(elements) // parts))

    @classmethod
    def of(cls, chunks: Sequence[range]) -> ChunkTable:
        """Return a table of these ranges."""
        native = _core.ElementTable.of([(chunk.start, chunk.stop) for chunk in chunks])
        return cls(native, max(map(len, chunks)))

    @cached_property
    def lengths(self) -> Integers:
        """The number of elements of each chunk."""
        return np.array([len(self[number]) for number in range(self.count)], np.int64)

    def __getitem__(self, number: int) -> range:
        """Return a chunk."""
        return range(*self.native.at(number))


class LaneSchedule:
    """The lanes of one rank, in stages that follow each other.

    Each method that adds something adds it to what was added last: an instruction to a loop, a loop to a block of
    lanes, a block to a stage. Ranges are elements of the data; ValueError for what names nothing, and for more
    transfers than immediates have numbers. `buffer_bytes` says how large each named buffer must be; all data are
    divided by `divisor` in the end.
    """

    def __init__(
        self,
        rank: int,
        buffer_bytes: dict[str, int],
        dtype: DataType,
        operation: Operation,
        run_tag: int = 0,
        divisor: int = 1,
    ) -> None:
        self.rank, self.buffer_bytes = rank, buffer_bytes
        self.element_bytes = dtype.element_bytes
        self.native = _core.LaneSchedule(dtype.value, operation.combined_by.name.lower(), run_tag, divisor=divisor)
        self.has_data = True
        self.named_channels: list[nodes.Channel] = []
        self.written: set[int] = set()
        self._tables: list[ChunkTable] = []
        self._sends: list[_Send] = []
        self._numbers: dict[nodes.Channel, int] = {}
        self._planes: set[int] = set()
        self._lanes = self._turns = 0

    def of_lengths(self) -> LaneSchedule:
        """Return a schedule that transfers as much, in the same order, without data: zeros into sinks.

        Reductions and copies, which take no time, are left out. What the network aggregates stays data.
        """
        lengths = copy(self)
        largest = max(self.buffer_bytes.values(), default=0)
        lengths.buffer_bytes = {nodes.ZEROS: largest, nodes.SINK: largest}
        if self._planes:
            lengths.buffer_bytes[nodes.DATA] = self.buffer_bytes[nodes.DATA]
        lengths.has_data = False
        return lengths

    def channels(self) -> list[nodes.Channel]:
        """Return the channels that are named, each once, in order, and channels for their clearances."""
        return [each for channel in dict.fromkeys(self.named_channels) for each in channel.with_clearances()]

    def written_peers(self) -> list[int]:
        """Return the ranks that this rank writes to, each once."""
        return list(dict.fromkeys(self.named_channels[number].peer for number in sorted(self.written)))

    def sent_bytes(self) -> Counter[nodes.Channel]:
        """Return the bytes that this rank writes over each channel."""
        sent: Counter[nodes.Channel] = Counter()
        for each in self._sends:
            channels, sizes = each.channels_and_elements()
            for number in np.unique(channels).tolist():
                elements = int(sizes[channels == number].sum())
                sent[self.named_channels[number]] += elements * self.element_bytes
        return sent

    def planes_aggregated(self) -> list[int]:
        """Return the planes with aggregation in their network, in order."""
        return sorted(self._planes)

    @property
    def step_count(self) -> int:
        """Steps of a run: transfers, waits and delays, and with data reductions and copies."""
        return self.native.step_count(self.has_data)

    def channel(self, channel: nodes.Channel) -> int:
        """Return the number by which instructions name a channel."""
        number = self._numbers.get(channel)
        if number is None:
            number = self._numbers[channel] = len(self.named_channels)
            self.named_channels.append(channel)
        return number

    def channel_row(self, channels: Iterable[nodes.Channel]) -> int:
        """Number channels one after the other, for a formula to go through, and return the first one's number."""
        first = len(self.named_channels)
        self.named_channels.extend(channels)
        return first

    def add_table(self, table: ChunkTable) -> int:
        """Return the number by which instructions name a table."""
        self._tables.append(table)
        return self.native.add_table(table.native)

    def add_marks(self) -> int:
        """Return the number of a set of elements that lanes mark and wait for."""
        return self.native.add_marks()

    def add_stage(self, after: Sequence[int] = ()) -> int:
        """Begin a stage, which runs when all lanes and transfers of these stages are done; returns its number."""
        return self.native.add_stage(list(after))

    def add_delay(self, duration_ps: int, after: Sequence[int] = ()) -> int:
        """Add a stage that takes so long."""
        stage = self.add_stage(after)
        self.add_lanes(1)
        self.add_loop(1, self.add_grid(1, DELAY))
        self.native.delay(duration_ps, 0)
        return stage

    def append(self, part: LaneSchedule, first_element: int, first_transfer: int, after: Sequence[int]) -> int:
        """Add a schedule of one stage as a stage; its data begin at an element, its scratch buffer behind ours."""
        scratch_bytes = self.buffer_bytes.get(nodes.SCRATCH, 0)
        first_channel = self.channel_row(part.named_channels)
        self.written.update(first_channel + number for number in part.written)
        for each in part._sends:
            channel = each.channel._replace(first=each.channel.first + first_channel)
            self._sends.append(each._replace(channel=channel))
        self._planes |= part._planes
        self.buffer_bytes[nodes.SCRATCH] = scratch_bytes + part.buffer_bytes.get(nodes.SCRATCH, 0)
        return self.native.append(
            part.native,
            first_element,
            scratch_bytes // self.element_bytes,
            first_transfer,
            first_channel,
            list(after),
        )

    def add_grid(self, cell_count: int, *slots: str) -> int:
        """Number steps, in the order in which grids are added: so many cells, each with a step of each kind given."""
        return self.native.add_grid(cell_count, [slot in _OF_DATA for slot in slots])

    def add_lanes(self, count: int) -> None:
        """Begin a block of lanes, which go through the same loops."""
        self._lanes = count
        self.native.add_block(count)

    def add_loop(self, turns: int, grid: int, cell: Formula = _BY_LANE) -> None:
        """Begin a loop. `cell` gives the cell of its steps, to which a transfer's number is added."""
        self._turns = turns
        self.native.add_loop(turns, grid, cell)

    def send(
        self,
        chunk: Chunk,
        channel: Formula,
        *,
        transfer: int,
        slot: int,
        to_scratch: bool = False,
        landing: Chunk | None = None,
        shift: int = 0,
        ahead: int = 0,
        terms: int = 1,
        is_copy: bool = False,
        is_to_itself: bool = False,
    ) -> None:
        """Write to the peer's data, or its scratch buffer, `shift` elements further on, and go on.

        With `ahead`, the step and the transfer belong to that many turns later.

        Over scale-up links, a host's switch reduces `terms` into one write: sends of the same transfer from as many
        ranks, with the receiver's own, which it sends to itself (`is_to_itself`, over any channel). Where there is one,
        it only goes up and comes back. `is_copy`: the switch multicasts the send before to a further peer, so that this
        rank's link carries nothing more.
        """
        self.written.update(
            channel.first + channel.per_turn * turn + channel.per_lane * lane
            for turn in (range(self._turns) if channel.per_turn else (0,))
            for lane in (range(self._lanes) if channel.per_lane else (0,))
        )
        if not is_to_itself:
            self._sends.append(_Send(self._tables[chunk.table], chunk, channel, self._turns, self._lanes))
        self.native.send(
            chunk, channel, transfer, to_scratch, landing, shift, slot, ahead, terms, is_copy, is_to_itself
        )

    def receive(self, chunk: Chunk, channel: Formula, *, transfer: int, slot: int, in_turn: bool = False) -> None:
        """Wait for the peer's transfer of these elements.

        It begins with the stage, as far as records say, or (`in_turn`) when the lane comes to it.
        """
        self.native.receive(chunk, channel, transfer, in_turn, slot)

    def reduce(self, chunk: Chunk, *, slot: int, shift: int = 0) -> None:
        """Reduce elements of the scratch buffer, `shift` further on, into elements of the data."""
        self.native.reduce(chunk, shift, slot)

    def copy(self, chunk: Chunk, *, slot: int, shift: int = 0) -> None:
        """Copy elements of the scratch buffer, `shift` further on, to elements of the data."""
        self.native.copy(chunk, shift, slot)

    def aggregate(
        self,
        chunk: Chunk,
        plane: int,
        *,
        slot: int,
        kind: InNetwork = InNetwork.ALL_REDUCE,
        root: int = 0,
    ) -> None:
        """Have a plane's network reduce or move elements in place, and go on.

        Of further trees see `CollectiveSpec.trees`.
        """
        self._planes.add(plane)
        self.native.aggregate(chunk, plane, slot, kind.value, self.rank, root)

    def await_elements(self, chunk: Chunk, marks: int) -> None:
        """Wait until all these elements are marked."""
        self.native.await_elements(chunk, marks)

    def mark_elements(self, chunk: Chunk, marks: int) -> None:
        """Mark elements, none of which is marked yet."""
        self.native.mark_elements(chunk, marks)

    def await_acknowledgement(self) -> None:
        """Wait until peers have acknowledged all that the lane has sent, and what it gave the network is reduced."""
        self.native.await_acknowledgement()


Schedule = LaneSchedule | nodes.RankSchedule
"""A rank's schedule: compact where it follows a pattern, else step by step."""
