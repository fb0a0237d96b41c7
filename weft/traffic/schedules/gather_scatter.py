"""Gather and scatter: a chunk of every rank for the root, or of the root for every rank.

Either directly between the root and each rank, as in nccl-tests (ncclSend and ncclRecv in a group), or through a
binomial tree, in which a rank passes on what its subtree has or gets: log2(n) messages at the root instead of n-1
(Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes
from weft.traffic.schedule_nodes import DATA, SCRATCH, Copy, RankSchedule
from weft.traffic.schedules.halving_doubling import MESSAGE_BYTES
from weft.traffic.schedules.plan import RankPlan, cut
from weft.traffic.schedules.spec import CollectiveSpec


def direct_gather(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Have every rank write its chunk to the root, all at once."""
    return _direct(spec, rank, to_root=True)


def direct_scatter(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write every rank's chunk from the root, all at once; the NIC shares the link among them."""
    return _direct(spec, rank, to_root=False)


def _direct(spec: CollectiveSpec, rank: int, *, to_root: bool) -> RankSchedule:
    schedule = RankSchedule(rank, {DATA: spec.size_bytes})
    others = [each for each in range(spec.rank_count) if each != rank] if rank == spec.root else [spec.root]
    for plane in range(len(spec.plane_rates_bps)):
        plan = RankPlan(spec, rank, schedule, plane)
        for other in others if spec.rank_count > 1 else ():
            chunk = spec.stripe_of(spec.chunk(other if rank == spec.root else rank), plane)
            for number, message in enumerate(cut(chunk, MESSAGE_BYTES, spec.element_bytes)):
                if (rank == spec.root) == to_root:
                    plan.wait(other, number)
                else:
                    plan.write(other, number, message)
    return schedule


class _Tree:
    """The binomial tree over the ranks' places, which count positions from the root on.

    The scratch buffer has all chunks in the order of the ranks' places, the planes' shares one after the other, so that
    a subtree's chunks are adjacent, and at the same place on all ranks.
    """

    def __init__(self, plan: RankPlan, begins: Sequence[int]) -> None:
        spec = plan.spec
        self.plan, self.spec, self.begins, self.count = plan, spec, begins, spec.rank_count
        self.place = (spec.position(plan.rank) - spec.position(spec.root)) % self.count
        lowest = self.place & -self.place if self.place else 1 << (self.count - 1).bit_length()
        self.parent = self.place - lowest if self.place else None
        distances = (1 << bit for bit in reversed(range(lowest.bit_length() - 1)))
        self.children = [self.place + each for each in distances if self.place + each < self.count]

    def rank_of(self, place: int) -> int:
        """Return the rank at a place."""
        return self.spec.rank_at((self.spec.position(self.spec.root) + place) % self.count)

    def pieces(self, place: int) -> list[range]:
        """Return the elements of a place's subtree, as messages between it and its parent."""
        end = min(place + (place & -place), self.count)
        elements = range(self.begins[place], self.begins[end])
        pieces = cut(elements, self.spec.piece_bytes, self.spec.element_bytes)
        return [part for piece in pieces for part in cut(piece, MESSAGE_BYTES, self.spec.element_bytes)]

    def receive(self, place: int, peer: int) -> list[tuple[range, int]]:
        """Wait for a subtree's messages from a peer's place; return their elements and steps."""
        return [(piece, self.plan.wait(self.rank_of(peer), number)) for number, piece in enumerate(self.pieces(place))]

    def send(self, place: int, peer: int, arrived: Sequence[tuple[range, int]]) -> None:
        """Write a subtree's messages to a peer's place, each as soon as what it needs has arrived."""
        for number, piece in enumerate(self.pieces(place)):
            span = self.spec.span(SCRATCH, piece)
            self.plan.write_span(self.rank_of(peer), number, span, span, _needed(piece, arrived))

    def copy(self, place: int, *, to_data: bool, after: Sequence[tuple[range, int]] = ()) -> list[tuple[range, int]]:
        """Copy a place's own chunk between the data and the scratch buffer; return its elements and the step."""
        packed = range(self.begins[place], self.begins[place + 1])
        if not packed:
            return []
        chunk = self.spec.stripe_of(self.spec.chunk(self.rank_of(place)), self.plan.plane)
        data, scratch = self.spec.span(DATA, chunk), self.spec.span(SCRATCH, packed)
        copy = Copy(data, scratch) if to_data else Copy(scratch, data)
        return [(packed, self.plan.schedule.add(copy, _needed(packed, after)))]


def _needed(piece: range, arrived: Sequence[tuple[range, int]]) -> list[int]:
    """Return the steps of which some elements are in a piece."""
    return [step for elements, step in arrived if elements.start < piece.stop and piece.start < elements.stop]


@lru_cache(maxsize=64)
def _begins(spec: CollectiveSpec) -> list[list[int]]:
    """Return, by plane, where each place's share of its chunk begins in the scratch buffer, and where the last ends."""
    first, root = 0, spec.position(spec.root)
    ranks = [spec.rank_at((root + place) % spec.rank_count) for place in range(spec.rank_count)]
    begins = []
    for plane in range(len(spec.plane_rates_bps)):
        lengths = [len(spec.stripe_of(spec.chunk(rank), plane)) for rank in ranks]
        begins.append(list(accumulate(lengths, initial=first)))
        first = begins[-1][-1]
    return begins


def _trees(spec: CollectiveSpec, rank: int, schedule: RankSchedule) -> list[_Tree]:
    plans = (RankPlan(spec, rank, schedule, plane) for plane in range(len(spec.plane_rates_bps)))
    return [_Tree(plan, begins) for plan, begins in zip(plans, _begins(spec), strict=True)]


def binomial_gather(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Have every rank pass on its subtree's chunks towards the root, piece by piece."""
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, SCRATCH: spec.size_bytes})
    for tree in _trees(spec, rank, schedule) if spec.rank_count > 1 else ():
        arrived = [each for child in reversed(tree.children) for each in tree.receive(child, child)]
        if tree.parent is not None:
            tree.send(tree.place, tree.parent, tree.copy(tree.place, to_data=False) + arrived)
            continue
        for place in range(1, tree.count):
            tree.copy(place, to_data=True, after=arrived)
    return schedule


def binomial_scatter(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Have every rank pass on its subtree's chunks away from the root, piece by piece, the largest subtree first."""
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, SCRATCH: spec.size_bytes})
    for tree in _trees(spec, rank, schedule) if spec.rank_count > 1 else ():
        if tree.parent is None:
            arrived = [each for place in range(1, tree.count) for each in tree.copy(place, to_data=False)]
        else:
            arrived = tree.receive(tree.place, tree.parent)
            tree.copy(tree.place, to_data=True, after=arrived)
        for child in tree.children:
            tree.send(child, child, arrived)
    return schedule


def binomial_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """log2(n) steps of a subtree's first piece, while the root's link carries all chunks but its own."""
    chunk_bytes, total = nic_bytes(spec) / spec.rank_count, Cost(0, 0.0, 0.0)
    busy_ps = (spec.rank_count - spec.ranks_per_host) * chunk_bytes * links.between.ps_per_byte
    for bit in range((spec.rank_count - 1).bit_length()):
        subtree = min(1 << bit, spec.rank_count - (1 << bit))
        wire = links.inside if 1 << bit < spec.ranks_per_host else links.between
        piece = piece_bytes(subtree * chunk_bytes, spec)
        busy_ps -= piece * wire.ps_per_byte
        total += Cost(1, wire.message_ps(piece), 0.0)
    return total + Cost(0, 0.0, max(0.0, busy_ps))
