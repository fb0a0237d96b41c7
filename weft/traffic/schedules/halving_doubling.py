"""Recursive halving and doubling: all-reduce, reduce-scatter, all-gather.

In log2(n) steps ranks exchange and reduce halves of what they still hold, and in as many double it again: a ring's
bytes in a tree's steps, for powers of two (Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", 2005, sections 4.1 and 4.5). An all-reduce of other numbers of ranks first has as many give their
data to a neighbour as there are above the power of two, and take the result from it in the end. Reduce-scatter and
all-gather are for powers of two. A rank's step begins when all of the one before has come: two steps at once would meet
at the receivers' links and leave others idle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, Formula, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.plan import MAX_PIECES, cut
from weft.traffic.schedules.spec import CollectiveSpec

MESSAGE_BYTES = 1 << 30
"""A step exchanges one message where possible; an RDMA message is at most 2 GiB."""


class _EvenChunks:
    """Chunks that cut a range evenly, by number."""

    def __init__(self, elements: range, count: int) -> None:
        self.elements, self.count = elements, count

    def joined(self, held: range) -> list[range]:
        """Return the elements of some chunks, which are adjacent."""
        start, length = self.elements.start, len(self.elements)
        return [range(start + length * held.start // self.count, start + length * held.stop // self.count)]


class _ListedChunks:
    """Chunks given as a list, by number."""

    def __init__(self, chunks: Sequence[range]) -> None:
        self.chunks, self.count = chunks, len(chunks)

    def joined(self, held: range) -> list[range]:
        """Return the elements of some chunks; adjacent ones are merged."""
        joined: list[range] = []
        for chunk in self.chunks[held.start : held.stop]:
            if joined and joined[-1].stop == chunk.start:
                joined[-1] = range(joined[-1].start, chunk.stop)
            else:
                joined.append(chunk)
        return joined


class _Lane:
    """A lane without loops, over one plane: what is added to it is done in that order."""

    def __init__(self, plan: LanePlan) -> None:
        self.plan = plan
        self._steps: list[tuple[str, Callable[[int], None]]] = []

    def write(self, plan: LanePlan, peer: int, number: int, piece: range, landing: int | None = None) -> None:
        """Write a piece to its place at the peer, or to its scratch buffer from element `landing` on."""
        channel, chunk = plan.channel(peer), plan.whole(piece)
        self._steps.append(
            (
                WRITE,
                lambda slot: plan.send(
                    chunk,
                    channel,
                    transfer=number,
                    to_scratch=landing is not None,
                    shift=0 if landing is None else landing - piece.start,
                    slot=slot,
                ),
            )
        )

    def wait(self, plan: LanePlan, peer: int, number: int, piece: range) -> None:
        """Wait for the peer's transfer of a piece."""
        channel, chunk = plan.channel(peer), plan.whole(piece)
        self._steps.append((WAIT, lambda slot: plan.receive(chunk, channel, transfer=number, slot=slot)))

    def reduce(self, piece: range, landing: int) -> None:
        """Reduce what the scratch buffer holds from element `landing` on into a piece."""
        plan, chunk = self.plan, self.plan.whole(piece)
        self._steps.append((REDUCE, lambda slot: plan.schedule.reduce(chunk, shift=landing - piece.start, slot=slot)))

    def add(self) -> None:
        """Add the lane to the schedule."""
        schedule = self.plan.schedule
        schedule.add_lanes(1)
        schedule.add_loop(1, schedule.add_grid(1, *(kind for kind, _ in self._steps)), Formula(0))
        for slot, (_, add) in enumerate(self._steps):
            add(slot)


class _Halving:
    """The exchange among a power of two of members, from the view of one of them.

    `distances` lead to the partners, step by step; each is a power of two. There is a chunk for each member, and member
    m is left with the chunk that its bits name, in the order of the distances. Arriving elements land in scratch from
    element `landing` on: as many as all chunks have, and one a step because halves are rounded.
    """

    def __init__(
        self,
        lane: _Lane,
        plan: LanePlan,
        member: int,
        ranks: Sequence[int],
        distances: Sequence[int],
        chunks: _EvenChunks | _ListedChunks,
        landing: int,
    ) -> None:
        self.lane, self.plan, self.member, self.ranks = lane, plan, member, ranks
        self.distances, self.chunks, self.landing = distances, chunks, landing

    def _held(self, member: int, steps: int) -> range:
        """Numbers of the chunks that a member still holds after so many steps of halving."""
        held = range(self.chunks.count)
        for distance in self.distances[:steps]:
            half = len(held) // 2
            held = held[half:] if member & distance else held[:half]
        return held

    def _segments(self, held: range) -> list[range]:
        """The elements of some chunks, as messages."""
        element_bytes = self.plan.spec.element_bytes
        joined = self.chunks.joined(held)
        return [message for elements in joined for message in cut(elements, MESSAGE_BYTES, element_bytes)]

    def _landings(self, member: int, step: int) -> list[tuple[range, int]]:
        """The step's pieces, and where in a member's scratch buffer they land: after the pieces of earlier steps."""
        start = self.landing + sum(
            len(elements) for before in range(step) for elements in self.chunks.joined(self._held(member, before + 1))
        )
        landings = []
        for piece in self._segments(self._held(member, step + 1)):
            landings.append((piece, start))
            start += len(piece)
        return landings

    def reduce_scatter(self) -> None:
        """Halve what is held until it is one chunk, reduced."""
        for step, distance in enumerate(self.distances):
            partner = self.member ^ distance
            peer = self.ranks[partner]
            for number, (piece, landing) in enumerate(self._landings(partner, step)):
                self.lane.write(self.plan, peer, number, piece, landing)
            for number, (piece, landing) in enumerate(self._landings(self.member, step)):
                self.lane.wait(self.plan, peer, number, piece)
                self.lane.reduce(piece, landing)

    def all_gather(self) -> None:
        """Double what is held, from one chunk to all."""
        # Each step has another partner, so only the two phases need transfers of different numbers.
        plan = self.plan.from_transfer(MAX_PIECES * len(self.chunks.joined(range(self.chunks.count))))
        for step in reversed(range(len(self.distances))):
            partner = self.member ^ self.distances[step]
            peer = self.ranks[partner]
            for number, piece in enumerate(self._segments(self._held(self.member, step + 1))):
                self.lane.write(plan, peer, number, piece)
            for number, piece in enumerate(self._segments(self._held(partner, step + 1))):
                self.lane.wait(plan, peer, number, piece)


def powers_of_two_below(count: int) -> list[int]:
    """Return the powers of two below a power of two, in order."""
    return [1 << bit for bit in range(count.bit_length() - 1)]


class Members:
    """The ranks that exchange data, a power of two; of the first 2·`paired` positions only the odd ones do.

    Those take part for themselves and for the neighbour before them. `ranks` are the members' ranks, `distances` lead
    from a member to its partners, nearest first.
    """

    def __init__(self, spec: CollectiveSpec) -> None:
        self.spec, self.ranks = spec, _ranks_of_members(spec)
        self.paired = spec.rank_count - len(self.ranks)
        self.distances = powers_of_two_below(len(self.ranks))

    def takes_part(self, rank: int) -> bool:
        """Return whether a rank is a member."""
        position = self.spec.position(rank)
        return position >= 2 * self.paired or position % 2 == 1

    def member(self, rank: int) -> int:
        """Return the number of a member."""
        position = self.spec.position(rank)
        return (position - 1) // 2 if position < 2 * self.paired else position - self.paired

    def neighbour(self, rank: int) -> int:
        """Return the other rank of a pair, or the rank itself if it has none."""
        position = self.spec.position(rank)
        return self.spec.rank_at(position ^ 1) if position < 2 * self.paired else rank


def halving_doubling_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce by recursive halving and doubling, nearest partners (who exchange most) first."""
    size_bytes, members = spec.size_bytes, Members(spec)
    distances = members.distances
    own_bytes = size_bytes + len(spec.plane_rates_bps) * len(distances) * spec.element_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: own_bytes + (size_bytes if members.paired else 0)})
    neighbour, landing = members.neighbour(rank), own_bytes // spec.element_bytes
    for plane, stripe in enumerate(spec.stripes()):
        if not stripe or spec.rank_count == 1:
            continue
        plan = LanePlan(spec, rank, schedule, plane)
        pieces = cut(stripe, MESSAGE_BYTES, spec.element_bytes)
        if not members.takes_part(rank):
            _give_and_take(plan, neighbour, stripe, len(pieces), landing)
            continue
        lane = _Lane(plan)
        for number, piece in enumerate(pieces if neighbour != rank else ()):
            lane.wait(plan, neighbour, number, piece)
            lane.reduce(piece, piece.start + landing)
        exchange = _Halving(
            lane,
            plan.from_transfer(len(pieces)),
            members.member(rank),
            members.ranks,
            distances,
            _EvenChunks(stripe, len(members.ranks)),
            stripe.start + plane * len(distances),
        )
        exchange.reduce_scatter()
        exchange.all_gather()
        for number, piece in enumerate(pieces if neighbour != rank else ()):
            lane.write(plan, neighbour, number, piece)
        lane.add()
    return schedule


@lru_cache(maxsize=64)
def _ranks_of_members(spec: CollectiveSpec) -> list[int]:
    members = 1 << spec.rank_count.bit_length() - 1
    paired = spec.rank_count - members
    positions = [2 * member + 1 if member < paired else member + paired for member in range(members)]
    return [spec.rank_at(position) for position in positions]


def _give_and_take(plan: LanePlan, neighbour: int, stripe: range, pieces: int, landing: int) -> None:
    """Add lanes that give a stripe to a neighbour, in pieces, and take the result from it."""
    schedule, piece, channel = plan.schedule, plan.pieces_of(stripe), plan.channel(neighbour)
    schedule.add_lanes(pieces)
    schedule.add_loop(1, schedule.add_grid(pieces, WRITE, WAIT))
    plan.send(piece, channel, to_scratch=True, shift=landing, slot=0)
    plan.receive(piece, channel, slot=1)


@lru_cache(maxsize=64)
def _chunks_of_ranks(spec: CollectiveSpec, plane: int) -> _EvenChunks | _ListedChunks:
    """Return the plane's share of every rank's chunk; all ranks share it."""
    if len(spec.plane_rates_bps) == 1:
        return _EvenChunks(range(spec.element_count), spec.rank_count)
    return _ListedChunks(spec.chunk_stripes(plane))


def _exchange_chunks(spec: CollectiveSpec, rank: int, schedule: LaneSchedule, *, reduces: bool) -> None:
    """Add each plane's exchange by which rank r is left with chunk r, or has it at first: farthest partners first."""
    distances = powers_of_two_below(spec.rank_count)[::-1]
    landing = 0
    for plane in range(len(spec.plane_rates_bps)):
        chunks = _chunks_of_ranks(spec, plane)
        elements = sum(map(len, chunks.joined(range(chunks.count))))
        if elements:
            plan = LanePlan(spec, rank, schedule, plane)
            lane = _Lane(plan)
            exchange = _Halving(lane, plan, rank, range(spec.rank_count), distances, chunks, landing)
            if reduces:
                exchange.reduce_scatter()
            else:
                exchange.all_gather()
            lane.add()
            landing += elements + len(distances)


def halving_reduce_scatter(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce-scatter by recursive halving. The ranks are a power of two."""
    size_bytes = spec.size_bytes
    rounding_bytes = len(spec.plane_rates_bps) * spec.rank_count.bit_length() * spec.element_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: size_bytes + rounding_bytes})
    _exchange_chunks(spec, rank, schedule, reduces=True)
    return schedule


def doubling_all_gather(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-gather by recursive doubling. The ranks are a power of two."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    _exchange_chunks(spec, rank, schedule, reduces=False)
    return schedule


def halving_doubling_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """2 log2(n) steps, and two more of all data for ranks beyond a power of two."""
    members = 1 << spec.rank_count.bit_length() - 1
    size_bytes, there_and_back = nic_bytes(spec), halving_cost(spec, links)
    total = there_and_back + there_and_back
    if members < spec.rank_count:
        once = Cost(1, links.between.message_ps(0), size_bytes * links.between.ps_per_byte)
        total += once + once
    return total


def halving_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """log2(n) steps, each of half of what is still held: of a reduce-scatter or an all-gather."""
    total, held_bytes = Cost(0, 0.0, 0.0), nic_bytes(spec)
    for distance in powers_of_two_below(spec.rank_count):
        held_bytes /= 2
        wire = links.inside if distance < spec.ranks_per_host else links.between
        busy_ps = held_bytes * wire.ps_per_byte
        total += Cost(1, wire.message_ps(held_bytes) - busy_ps, busy_ps)
    return total
