"""Generators of collective schedules: (what, rank, rank count) in, that rank's dependency graph out.

Every generator is called alike on all ranks and needs no communication: what one rank writes is what its
peer waits for, because both derive the same chunks and immediates. Bounds: a ring all-reduce moves 2(n-1)/n
of the buffer per rank (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009), one in the
network moves it once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traffic.aggregation_format import Operation
from traffic.schedule_nodes import (
    DATA,
    ELEMENT_BYTES,
    SCRATCH,
    Aggregate,
    Channel,
    DataType,
    RankSchedule,
    Reduce,
    Span,
    WaitReceive,
    Write,
    run_immediate,
)
from traffic.striping import split_evenly, stripe

DEFAULT_PIECE_BYTES = 16 * 1024
MAX_PIECES_PER_CHUNK = 64
MAX_RANKS = 1 << 16


@dataclass(frozen=True)
class CollectiveSpec:
    """What is reduced, and over which planes; `run_tag` as in `run_immediate`."""

    rank_count: int
    element_count: int
    dtype: DataType
    operation: Operation
    plane_rates_bps: tuple[int, ...]
    piece_bytes: int = DEFAULT_PIECE_BYTES
    run_tag: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for counts and sizes that make no collective."""
        if not 1 <= self.rank_count <= MAX_RANKS:
            raise ValueError(f"{self.rank_count} ranks (valid: 1 to {MAX_RANKS})")
        if self.element_count < 0:
            raise ValueError(f"{self.element_count} elements (valid: 0 or more)")
        if self.piece_bytes < ELEMENT_BYTES:
            raise ValueError(f"pieces of {self.piece_bytes} bytes (valid: {ELEMENT_BYTES} or more)")

    def stripes(self) -> list[range]:
        """Return the elements of each plane."""
        return stripe(self.element_count, self.plane_rates_bps)


class _Ring:
    """One plane's ring, from the view of one rank: who is next, and how chunks are cut into pieces.

    Chunks have the same number of pieces, so that piece p of every step depends on piece p of the step before
    and on nothing else: transfers of different pieces overlap.
    """

    def __init__(self, spec: CollectiveSpec, rank: int, plane: int, elements: range) -> None:
        self.spec, self.rank, self.count = spec, rank, spec.rank_count
        self.to_next = Channel(plane, (rank + 1) % self.count)
        self.from_previous = Channel(plane, (rank - 1) % self.count)
        largest_bytes = -(-len(elements) // self.count) * ELEMENT_BYTES
        self.piece_count = max(1, min(-(-largest_bytes // spec.piece_bytes), MAX_PIECES_PER_CHUNK))
        self.chunks = [split_evenly(chunk, self.piece_count) for chunk in split_evenly(elements, self.count)]

    def span(self, buffer: str, chunk: int, piece: int) -> Span:
        """Return where a piece of a chunk (modulo the ring) lies in a buffer."""
        elements = self.chunks[chunk % self.count][piece]
        return Span(buffer, elements.start * ELEMENT_BYTES, len(elements) * ELEMENT_BYTES)

    def transfer(
        self, schedule: RankSchedule, step: int, piece: int, sent_chunk: int, landing: str, after: int | None
    ) -> int | None:
        """Add the write of one piece to the next rank and the wait for the one of the chunk before.

        Returns the wait, or None if nothing will come (an empty piece). Nothing empty is ever written.
        """
        immediate = run_immediate(self.spec.run_tag, step * self.piece_count + piece)
        source = self.span(DATA, sent_chunk, piece)
        if source.length_bytes:
            destination = self.span(landing, sent_chunk, piece)
            schedule.add(Write(self.to_next, source, destination, immediate), [after])
        if not self.span(DATA, sent_chunk - 1, piece).length_bytes:
            return None
        return schedule.add(WaitReceive(self.from_previous, immediate))

    def reduce_scatter(self, schedule: RankSchedule, last: list[int | None]) -> None:
        """After n-1 steps this rank holds chunk rank+1 reduced. `last[p]` is what piece p has to wait for."""
        for step in range(self.count - 1):
            for piece in range(self.piece_count):
                sent_chunk = self.rank - step
                arrived = self.transfer(schedule, step, piece, sent_chunk, SCRATCH, last[piece])
                last[piece] = None
                if arrived is not None:
                    target = self.span(DATA, sent_chunk - 1, piece)
                    partial = self.span(SCRATCH, sent_chunk - 1, piece)
                    reduction = Reduce(target, partial, self.spec.dtype, self.spec.operation)
                    last[piece] = schedule.add(reduction, [arrived])

    def all_gather(self, schedule: RankSchedule, last: list[int | None]) -> None:
        """Pass the finished chunks around, each straight into its place."""
        for step in range(self.count - 1):
            for piece in range(self.piece_count):
                number = self.count - 1 + step
                sent_chunk = self.rank + 1 - step
                last[piece] = self.transfer(schedule, number, piece, sent_chunk, DATA, last[piece])


def ring_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by a ring per plane: reduce-scatter, then all-gather, both pipelined in pieces."""
    _check_rank(spec, rank)
    size_bytes = spec.element_count * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for plane, elements in enumerate(spec.stripes()):
        if not elements or spec.rank_count == 1:
            continue
        ring = _Ring(spec, rank, plane, elements)
        last: list[int | None] = [None] * ring.piece_count
        ring.reduce_scatter(schedule, last)
        ring.all_gather(schedule, last)
    return schedule


def in_network_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by the switches: each plane's aggregation tree reduces the plane's stripe."""
    _check_rank(spec, rank)
    schedule = RankSchedule(rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for plane, elements in enumerate(spec.stripes()):
        if elements:
            span = Span(DATA, elements.start * ELEMENT_BYTES, len(elements) * ELEMENT_BYTES)
            schedule.add(Aggregate(plane, span, spec.dtype, spec.operation))
    return schedule


Generator = Callable[[CollectiveSpec, int], RankSchedule]

GENERATORS: dict[tuple[str, str], Generator] = {
    ("allreduce", "ring"): ring_all_reduce,
    ("allreduce", "in-network"): in_network_all_reduce,
}
"""Generators by (collective, algorithm)."""


def generate(collective: str, algorithm: str, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Return the rank's schedule of a collective. Raises ValueError for an unknown one."""
    try:
        generator = GENERATORS[collective, algorithm]
    except KeyError:
        valid = ", ".join(f"{name} by {how}" for name, how in GENERATORS)
        raise ValueError(f"unknown collective {collective!r} by {algorithm!r} (valid: {valid})") from None
    return generator(spec, rank)


def peers_of(schedules: Sequence[RankSchedule]) -> list[tuple[int, Channel]]:
    """Return every (rank, channel) pair that the schedules of all ranks use, each once."""
    used = ((schedule.rank, channel) for schedule in schedules for channel in schedule.channels())
    return list(dict.fromkeys(used))


def _check_rank(spec: CollectiveSpec, rank: int) -> None:
    if not 0 <= rank < spec.rank_count:
        raise ValueError(f"rank {rank} (valid: 0 to {spec.rank_count - 1})")
