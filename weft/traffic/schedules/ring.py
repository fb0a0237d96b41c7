"""Rings: all-reduce, reduce-scatter and all-gather around all ranks, broadcast and reduce along them.

A ring all-reduce moves 2(n-1)/n of the data through every rank's link, the least there is without help from the
network (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009); a reduce-scatter or an all-gather
moves (n-1)/n, a broadcast or a reduce all of it.

Where several ranks share a host there are as many rings as ranks in a host, each with its share of the data. A ring
passes all ranks of a host before it leaves, and goes through every other host backwards, so that it leaves a host by
the rail on which it enters the next, each ring by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes, pipelined
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.plan import MAX_PIECES, MAX_PIECES_IN_A_HOST, cut, piece_count
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly


class Ring:
    """One ring, from the view of the rank at `position`: who is next, and how chunks are cut into pieces.

    Chunk i belongs to the rank at position i. All are cut into as many pieces, and a lane goes around with one piece of
    each: piece p of every step depends on piece p of the step before and on nothing else, so that transfers of
    different pieces overlap.
    """

    def __init__(self, plan: LanePlan, position: int, rank_at: Callable[[int], int], chunks: ChunkTable) -> None:
        self.plan, self.position, self.count = plan, position, chunks.count
        self.next = rank_at((position + 1) % self.count)
        self.previous = rank_at((position - 1) % self.count)
        most = MAX_PIECES_IN_A_HOST if plan.spec.is_within_a_host else MAX_PIECES
        self.piece_count = piece_count(chunks.largest * plan.spec.element_bytes, plan.spec.piece_bytes, most)
        self._chunks = chunks
        self._table = plan.schedule.add_table(chunks)

    @property
    def transfer_count(self) -> int:
        """Transfers to the next rank of a reduce-scatter and an all-gather together."""
        return 2 * (self.count - 1) * self.piece_count

    def reduce_scatter(self, after: int | None = None, marks: int | None = None) -> None:
        """Add lanes that reduce this rank's own chunk in n-1 steps.

        They take elements of the data as they are marked in `after`, and mark the own chunk's elements in `marks`.
        """
        plan, schedule, steps, pieces = self.plan, self.plan.schedule, self.count - 1, self.piece_count
        to_next, from_previous = self._channels(self.position - 1)
        grid = schedule.add_grid(steps * pieces, WRITE, WAIT, REDUCE)
        first_sent = self._piece(self.position - 1)
        schedule.add_lanes(pieces)
        schedule.add_loop(1, grid, Formula(0, pieces, 1))
        if after is not None:
            schedule.await_elements(first_sent, after)
        plan.send(first_sent, to_next, to_scratch=True, slot=0)

        def take(chunk: Chunk) -> None:
            plan.receive(chunk, from_previous, slot=1)
            if after is not None:
                schedule.await_elements(chunk, after)
            schedule.reduce(chunk, slot=2)

        schedule.add_lanes(pieces)
        if steps > 1:
            # What is reduced at a step is sent on at the next one.
            schedule.add_loop(steps - 1, grid, Formula(0, pieces, 1))
            arriving = self._piece(self.position - 2, -1)
            take(arriving)
            plan.send(arriving, to_next, to_scratch=True, slot=0, ahead=1)
        schedule.add_loop(1, grid, Formula((steps - 1) * pieces, pieces, 1))
        take(self._piece(self.position))
        if marks is not None:
            schedule.mark_elements(self._piece(self.position), marks)

    def all_gather(self, marks: int | None = None, *, goes_on: bool = False) -> None:
        """Add loops that pass every rank's own chunk around, straight into its place, and mark what arrives.

        They begin where the lanes of a reduce-scatter end (`goes_on`), or are lanes of their own.
        """
        plan, schedule, steps, pieces = self.plan, self.plan.schedule, self.count - 1, self.piece_count
        to_next, from_previous = self._channels(self.position)
        grid = schedule.add_grid(steps * pieces, WRITE, WAIT)
        if not goes_on:
            schedule.add_lanes(pieces)
        schedule.add_loop(steps, grid, Formula(0, pieces, 1))
        plan.send(self._piece(self.position, -1), to_next, slot=0, transfer=steps * pieces)
        arriving = self._piece(self.position - 1, -1)
        plan.receive(arriving, from_previous, slot=1, transfer=steps * pieces)
        if marks is not None:
            schedule.mark_elements(arriving, marks)

    def _piece(self, chunk: int, per_turn: int = 0) -> Chunk:
        return Chunk(self._table, chunk, per_turn, 0, True)

    def _channels(self, first_sent: int) -> tuple[Formula, Formula]:
        """Return the channels to the next and from the previous rank, named in order of their first transfer.

        Where chunks are empty there may be no transfer over one of them; its number is then irrelevant.
        """
        peers: dict[int, None] = {}
        for step in range(self.count - 1):
            for peer, chunk in ((self.next, first_sent - step), (self.previous, first_sent - 1 - step)):
                if self._chunks[chunk]:
                    peers[peer] = None
            if {self.next, self.previous} <= peers.keys():
                break
        numbers = {peer: self.plan.channel(peer) for peer in peers}
        return numbers.get(self.next, Formula(0)), numbers.get(self.previous, Formula(0))


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


def ring_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce by rings on each plane: reduce-scatter, then all-gather, both pipelined in pieces."""
    size_bytes = spec.size_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: size_bytes})
    if spec.rank_count == 1:
        return schedule
    for plane, stripe in enumerate(spec.stripes()):
        plan = LanePlan(spec, rank, schedule, plane)
        for order, elements in zip(_orders(spec), split_evenly(stripe, spec.ranks_per_host), strict=True):
            if elements:
                chunks = ChunkTable.evenly(elements, spec.rank_count)
                ring = Ring(plan, order.place_of(rank), order.rank_at, chunks)
                ring.reduce_scatter()
                ring.all_gather(goes_on=True)
                plan = plan.from_transfer(ring.transfer_count)
    return schedule


@lru_cache(maxsize=64)
def _chunks_of_rings(spec: CollectiveSpec, plane: int) -> list[ChunkTable | None]:
    """Return what each of a plane's rings carries of every rank's chunk, by place in the ring; all ranks share it."""
    shares = [split_evenly(chunk, spec.ranks_per_host) for chunk in spec.chunk_stripes(plane)]
    tables = []
    for number, order in enumerate(_orders(spec)):
        chunks = [shares[order.rank_at(place)][number] for place in range(spec.rank_count)]
        tables.append(ChunkTable.of(chunks) if any(chunks) else None)
    return tables


def _chunk_rings(spec: CollectiveSpec, rank: int, schedule: LaneSchedule) -> Iterator[Ring]:
    """Yield the rings that carry every rank's chunk, shared out over planes and rings."""
    for plane in range(len(spec.plane_rates_bps) if spec.rank_count > 1 else 0):
        plan = LanePlan(spec, rank, schedule, plane)
        for order, chunks in zip(_orders(spec), _chunks_of_rings(spec, plane), strict=True):
            if chunks is not None:
                ring = Ring(plan, order.place_of(rank), order.rank_at, chunks)
                yield ring
                plan = plan.from_transfer(ring.transfer_count)


def ring_reduce_scatter(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce-scatter by rings: the rank's own chunk ends up reduced, the rest of its data is overwritten."""
    size_bytes = spec.size_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for ring in _chunk_rings(spec, rank, schedule):
        ring.reduce_scatter()
    return schedule


def ring_all_gather(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-gather by rings."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    for ring in _chunk_rings(spec, rank, schedule):
        ring.all_gather()
    return schedule


def _chain(spec: CollectiveSpec, rank: int) -> tuple[int | None, int | None]:
    """Return the ranks before and behind this one in the chain from the root through all ranks, host by host."""
    first = spec.position(spec.root)
    place = (spec.position(rank) - first) % spec.rank_count
    before = spec.rank_at((first + place - 1) % spec.rank_count) if place > 0 else None
    behind = spec.rank_at((first + place + 1) % spec.rank_count) if place + 1 < spec.rank_count else None
    return before, behind


def _pieces_of_planes(spec: CollectiveSpec, rank: int, schedule: LaneSchedule) -> Iterator[tuple[LanePlan, Chunk, int]]:
    """Add a lane for each piece of each plane; yield the plane's plan, its pieces, and how many there are."""
    for plane, stripe in enumerate(spec.stripes()):
        pieces = len(cut(stripe, spec.piece_bytes, spec.element_bytes))
        if pieces and spec.rank_count > 1:
            plan = LanePlan(spec, rank, schedule, plane)
            piece = plan.pieces_of(stripe)
            schedule.add_lanes(pieces)
            yield plan, piece, pieces


def ring_broadcast(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Broadcast along the ring from the root, piece after piece."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    before, behind = _chain(spec, rank)
    for plan, piece, pieces in _pieces_of_planes(spec, rank, schedule):
        kinds = [kind for kind, peer in ((WAIT, before), (WRITE, behind)) if peer is not None]
        schedule.add_loop(1, schedule.add_grid(pieces, *kinds))
        if before is not None:
            plan.receive(piece, plan.channel(before), slot=kinds.index(WAIT))
        if behind is not None:
            plan.send(piece, plan.channel(behind), slot=kinds.index(WRITE))
    return schedule


def ring_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce along the ring towards the root, piece after piece; the other ranks' data is overwritten."""
    size_bytes = spec.size_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: size_bytes})
    before, behind = _chain(spec, rank)
    for plan, piece, pieces in _pieces_of_planes(spec, rank, schedule):
        arriving = [] if behind is None else [WAIT, REDUCE]
        schedule.add_loop(1, schedule.add_grid(pieces, *arriving, *([] if before is None else [WRITE])))
        if behind is not None:
            plan.receive(piece, plan.channel(behind), slot=0)
            schedule.reduce(piece, slot=1)
        if before is not None:
            plan.send(piece, plan.channel(before), to_scratch=True, slot=len(arriving))
    return schedule


def _around(spec: CollectiveSpec, links: Links, passes: int) -> Cost:
    """Return the cost of chunks that go around so often: a NIC carries one ring's, scale-up links the others'."""
    ranks, rings = spec.rank_count, spec.ranks_per_host
    steps = passes * (ranks - 1)
    chunk_bytes = nic_bytes(spec) / (rings * ranks)
    outside = 0 if spec.host_count == 1 else steps // rings
    piece = piece_bytes(chunk_bytes, spec)
    way_ps = outside * links.between.message_ps(piece) + (steps - outside) * links.inside.message_ps(piece)
    busy = [(rings - 1) * links.inside.ps_per_byte, links.between.ps_per_byte if outside else 0.0]
    return pipelined(steps, way_ps / max(1, steps), steps * chunk_bytes * max(busy))


def ring_all_reduce_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """2(n-1) steps, each of a chunk of 1/n."""
    return _around(spec, links, 2)


def ring_pass_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """n-1 steps, each of a chunk of 1/n: of a reduce-scatter or an all-gather."""
    return _around(spec, links, 1)


def chain_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """n-1 steps of the first piece, then the others behind it: of a broadcast or a reduce."""
    size_bytes, outside = nic_bytes(spec), spec.host_count - 1
    inside = spec.rank_count - 1 - outside
    piece = piece_bytes(size_bytes, spec)
    latency_ps = outside * links.between.message_ps(piece) + inside * links.inside.message_ps(piece)
    slowest = links.between if outside else links.inside
    return Cost(outside + inside, latency_ps, (size_bytes - piece) * slowest.ps_per_byte)
