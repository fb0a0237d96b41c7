"""Rings: all-reduce, reduce-scatter and all-gather around all ranks, broadcast and reduce along them.

A ring all-reduce moves 2(n-1)/n of the data through every rank's line, the least there is without help from the
network (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009); a reduce-scatter or an all-gather
moves (n-1)/n, a broadcast or a reduce all of it.

Where several ranks share a host there are as many rings as ranks in a host, each with its share of the data. A ring
passes all ranks of a host before it leaves, and goes through every other host backwards, so that it leaves a host by
the rail on which it enters the next, each ring by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules.plan import RankPlan, Readiness, cut, piece_count
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly


class Ring:
    """One ring, from the view of the rank at `position`: who is next, and how chunks are cut into pieces.

    `chunks[i]` belongs to the rank at position i. All are cut into as many pieces, so that piece p of every step
    depends on piece p of the step before and on nothing else: transfers of different pieces overlap.
    """

    def __init__(
        self, plan: RankPlan, position: int, rank_at: Callable[[int], int], chunks: Sequence[range]
    ) -> None:
        self.plan, self.position, self.count = plan, position, len(chunks)
        self.next = rank_at((position + 1) % self.count)
        self.previous = rank_at((position - 1) % self.count)
        self.piece_count = piece_count(max(map(len, chunks)), plan.spec.piece_bytes)
        self._chunks = chunks

    @property
    def transfer_count(self) -> int:
        """Transfers to the next rank of a reduce-scatter and an all-gather together."""
        return 2 * (self.count - 1) * self.piece_count

    def pieces(self, chunk: int) -> list[range]:
        """Return the pieces of a chunk, which counts modulo the ring."""
        return split_evenly(self._chunks[chunk % self.count], self.piece_count)

    def reduce_scatter(self, ready: Readiness) -> Readiness:
        """Reduce this rank's own chunk in n-1 steps; returns what makes it ready."""
        plan = self.plan
        reduced: list[int | None] = [None] * self.piece_count
        for step in range(self.count - 1):
            sent, arriving = (self.pieces(self.position - 1 - step - more) for more in (0, 1))
            for piece in range(self.piece_count):
                number = step * self.piece_count + piece
                if sent[piece]:
                    after = [reduced[piece]] if step else ready.after(sent[piece])
                    plan.write(self.next, number, sent[piece], to=SCRATCH, after=after)
                reduced[piece] = None
                if arriving[piece]:
                    arrived = plan.wait(self.previous, number)
                    reduced[piece] = plan.reduce(
                        arriving[piece], arriving[piece], [arrived, *ready.after(arriving[piece])]
                    )
        done = Readiness()
        for elements, node in zip(self.pieces(self.position), reduced, strict=True):
            if node is not None:
                done.record(elements, node)
        return done

    def all_gather(self, ready: Readiness) -> Readiness:
        """Pass every rank's own chunk around, straight into its place; `ready`, returned, then tells of all."""
        plan = self.plan.from_transfer((self.count - 1) * self.piece_count)
        arrived: list[int | None] = [None] * self.piece_count
        for step in range(self.count - 1):
            sent, arriving = (self.pieces(self.position - step - more) for more in (0, 1))
            for piece in range(self.piece_count):
                number = step * self.piece_count + piece
                if sent[piece]:
                    after = [arrived[piece]] if step else ready.after(sent[piece])
                    plan.write(self.next, number, sent[piece], after=after)
                arrived[piece] = None
                if arriving[piece]:
                    node = arrived[piece] = plan.wait(self.previous, number)
                    ready.record(arriving[piece], node)
        return ready


class _RingOrder:
    """The order of ring `number` of as many as a host has ranks: whole hosts, every other one backwards."""

    def __init__(self, spec: CollectiveSpec, number: int) -> None:
        self.spec, self.number = spec, number

    def rank_at(self, place: int) -> int:
        size = self.spec.ranks_per_host
        host, step = divmod(place, size)
        local = (self.number + step) % size if host % 2 == 0 else (self.number - 1 - step) % size
        return self.spec.rank_at(host * size + local)

    def place_of(self, rank: int) -> int:
        size = self.spec.ranks_per_host
        host, local = divmod(self.spec.position(rank), size)
        step = (local - self.number) if host % 2 == 0 else (self.number - 1 - local)
        return host * size + step % size


def _orders(spec: CollectiveSpec) -> list[_RingOrder]:
    return [_RingOrder(spec, number) for number in range(spec.ranks_per_host)]


def ring_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by rings on each plane: reduce-scatter, then all-gather, both pipelined in pieces."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    if spec.rank_count == 1:
        return schedule
    for plane, stripe in enumerate(spec.stripes()):
        plan = RankPlan(spec, rank, schedule, plane)
        for order, elements in zip(_orders(spec), split_evenly(stripe, spec.ranks_per_host), strict=True):
            if elements:
                chunks = split_evenly(elements, spec.rank_count)
                ring = Ring(plan, order.place_of(rank), order.rank_at, chunks)
                ring.all_gather(ring.reduce_scatter(Readiness()))
                plan = plan.from_transfer(ring.transfer_count)
    return schedule


def _chunk_rings(spec: CollectiveSpec, rank: int, schedule: RankSchedule) -> list[Ring]:
    """Return the rings that carry every rank's chunk, shared out over planes and rings."""
    rings = []
    for plane in range(len(spec.plane_rates_bps)):
        plan = RankPlan(spec, rank, schedule, plane)
        shares = [split_evenly(chunk, spec.ranks_per_host) for chunk in spec.chunk_stripes(plane)]
        for number, order in enumerate(_orders(spec)):
            chunks = [shares[order.rank_at(place)][number] for place in range(spec.rank_count)]
            if any(chunks) and spec.rank_count > 1:
                rings.append(Ring(plan, order.place_of(rank), order.rank_at, chunks))
                plan = plan.from_transfer(rings[-1].transfer_count)
    return rings


def ring_reduce_scatter(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Reduce-scatter by rings: the rank's own chunk ends up reduced, the rest of its data is used up."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for ring in _chunk_rings(spec, rank, schedule):
        ring.reduce_scatter(Readiness())
    return schedule


def ring_all_gather(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-gather by rings."""
    schedule = RankSchedule(rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for ring in _chunk_rings(spec, rank, schedule):
        ring.all_gather(Readiness())
    return schedule


def _chain(spec: CollectiveSpec, rank: int) -> tuple[int | None, int | None]:
    """Return the ranks before and behind this one in the chain from the root through all ranks, host by host."""
    first = spec.position(spec.root)
    place = (spec.position(rank) - first) % spec.rank_count
    before = spec.rank_at((first + place - 1) % spec.rank_count) if place > 0 else None
    behind = spec.rank_at((first + place + 1) % spec.rank_count) if place + 1 < spec.rank_count else None
    return before, behind


def ring_broadcast(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Broadcast along the ring from the root, piece after piece."""
    schedule = RankSchedule(rank, {DATA: spec.element_count * ELEMENT_BYTES})
    before, behind = _chain(spec, rank)
    for plane, stripe in enumerate(spec.stripes()):
        plan = RankPlan(spec, rank, schedule, plane)
        for number, piece in enumerate(cut(stripe, spec.piece_bytes)):
            arrived = plan.wait(before, number) if before is not None else None
            if behind is not None:
                plan.write(behind, number, piece, after=[arrived])
    return schedule


def ring_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Reduce along the ring towards the root, piece after piece; the other ranks' data is used up."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    before, behind = _chain(spec, rank)
    for plane, stripe in enumerate(spec.stripes()):
        plan = RankPlan(spec, rank, schedule, plane)
        for number, piece in enumerate(cut(stripe, spec.piece_bytes)):
            reduced = plan.reduce(piece, piece, [plan.wait(behind, number)]) if behind is not None else None
            if before is not None:
                plan.write(before, number, piece, to=SCRATCH, after=[reduced])
    return schedule
