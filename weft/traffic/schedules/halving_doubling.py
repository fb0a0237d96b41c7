"""Recursive halving and doubling: all-reduce, reduce-scatter, all-gather.

In log2(n) steps ranks exchange and reduce halves of what they still hold, and in as many double it again: a ring's
bytes in a tree's steps, for powers of two (Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", 2005, sections 4.1 and 4.5). An all-reduce of other numbers of ranks first has as many give their
data to a neighbour as there are above the power of two, and take the result from it in the end. Reduce-scatter and
all-gather are for powers of two. A rank's step begins when all of the one before has come: two steps at once would meet
at the receivers' lines and leave others idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules.plan import MAX_PIECES, RankPlan, Readiness, cut, shifted
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

_MESSAGE_BYTES = 1 << 30
"""What a step exchanges is one message where it can be; one of RDMA is at most 2 GiB."""


class _Halving:
    """The exchange among a power of two of members, from the view of one of them.

    `distances` are those of the partners, step by step; each is a power of two. `chunks` are as many as members, and
    member m is left with the one that its bits, in the order of the distances, name. What arrives lands in scratch from
    element `landing` on: as much as all chunks, and one element a step because halves are rounded.
    """

    def __init__(
        self,
        plan: RankPlan,
        member: int,
        ranks: Sequence[int],
        distances: Sequence[int],
        chunks: Sequence[range],
        landing: int,
    ) -> None:
        self.plan, self.member, self.ranks = plan, member, ranks
        self.distances, self.chunks, self.landing = distances, chunks, landing

    def _held(self, member: int, steps: int) -> range:
        """Numbers of the chunks that a member still holds after so many steps of halving."""
        held = range(len(self.chunks))
        for distance in self.distances[:steps]:
            half = len(held) // 2
            held = held[half:] if member & distance else held[:half]
        return held

    def _joined(self, held: range) -> list[range]:
        """The elements of some chunks; those that lie side by side go together."""
        joined: list[range] = []
        for chunk in (self.chunks[number] for number in held):
            if joined and joined[-1].stop == chunk.start:
                joined[-1] = range(joined[-1].start, chunk.stop)
            else:
                joined.append(chunk)
        return joined

    def _segments(self, held: range) -> list[range]:
        """The elements of some chunks, as messages."""
        return [message for elements in self._joined(held) for message in cut(elements, _MESSAGE_BYTES)]

    def _landings(self, member: int, step: int) -> list[range]:
        """Where in a member's scratch buffer the step's pieces land: behind those of the steps before."""
        start = self.landing + sum(
            len(self.chunks[number]) for before in range(step) for number in self._held(member, before + 1)
        )
        landings = []
        for piece in self._segments(self._held(member, step + 1)):
            landings.append(range(start, start + len(piece)))
            start += len(piece)
        return landings

    def reduce_scatter(self, ready: Readiness) -> Readiness:
        """Halve what is held until it is one chunk, reduced; returns what makes it ready."""
        for step, distance in enumerate(self.distances):
            partner = self.member ^ distance
            plan, peer = self.plan, self.ranks[partner]
            sent = self._segments(self._held(partner, step + 1))
            for number, (piece, landing) in enumerate(zip(sent, self._landings(partner, step), strict=True)):
                plan.write(peer, number, piece, landing, to=SCRATCH, after=ready.nodes())
            kept = self._segments(self._held(self.member, step + 1))
            reduced = Readiness()
            for number, (piece, landing) in enumerate(
                zip(kept, self._landings(self.member, step), strict=True)
            ):
                arrived = plan.wait(peer, number)
                reduced.record(piece, plan.reduce(piece, landing, [arrived, *ready.after(piece)]))
            ready = reduced
        return ready

    def all_gather(self, ready: Readiness) -> Readiness:
        """Double what is held, from one chunk to all; returns what makes them ready."""
        # Each step has another partner, so only the two phases need transfers of different numbers.
        plan = self.plan.from_transfer(MAX_PIECES * len(self._joined(range(len(self.chunks)))))
        for step in reversed(range(len(self.distances))):
            partner = self.member ^ self.distances[step]
            peer = self.ranks[partner]
            for number, piece in enumerate(self._segments(self._held(self.member, step + 1))):
                plan.write(peer, number, piece, after=ready.nodes())
            for number, piece in enumerate(self._segments(self._held(partner, step + 1))):
                ready.record(piece, plan.wait(peer, number))
        return ready


def _powers_of_two_below(count: int) -> list[int]:
    return [1 << bit for bit in range(count.bit_length() - 1)]


def halving_doubling_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by recursive halving and doubling, nearest partners (who exchange most) first."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    members = 1 << spec.rank_count.bit_length() - 1
    paired = spec.rank_count - members
    distances = _powers_of_two_below(members)
    own_bytes = size_bytes + len(spec.plane_rates_bps) * len(distances) * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: own_bytes + (size_bytes if paired else 0)})
    # Of the first 2·paired positions, the odd ones take part, for themselves and for their neighbours.
    positions = [2 * member + 1 if member < paired else member + paired for member in range(members)]
    ranks = [spec.rank_at(position) for position in positions]
    position = spec.position(rank)
    for plane, stripe in enumerate(spec.stripes()):
        if not stripe or spec.rank_count == 1:
            continue
        plan = RankPlan(spec, rank, schedule, plane)
        pieces = cut(stripe, _MESSAGE_BYTES)
        landing_offset = own_bytes // ELEMENT_BYTES
        if position < 2 * paired and position % 2 == 0:
            neighbour = spec.rank_at(position + 1)
            for number, piece in enumerate(pieces):
                plan.write(neighbour, number, piece, shifted(piece, landing_offset), to=SCRATCH)
                plan.wait(neighbour, number)
            continue
        ready = Readiness()
        neighbour = spec.rank_at(position - 1)
        if position < 2 * paired:
            for number, piece in enumerate(pieces):
                arrived = plan.wait(neighbour, number)
                ready.record(piece, plan.reduce(piece, shifted(piece, landing_offset), [arrived]))
        exchange = _Halving(
            plan.from_transfer(len(pieces)),
            positions.index(position),
            ranks,
            distances,
            split_evenly(stripe, members),
            stripe.start + plane * len(distances),
        )
        ready = exchange.all_gather(exchange.reduce_scatter(ready))
        if position < 2 * paired:
            for number, piece in enumerate(pieces):
                plan.write(neighbour, number, piece, after=ready.nodes())
    return schedule


def _chunk_exchanges(spec: CollectiveSpec, rank: int, schedule: RankSchedule) -> list[_Halving]:
    """Return each plane's exchange that leaves rank r with chunk r: farthest partners first."""
    distances = _powers_of_two_below(spec.rank_count)[::-1]
    exchanges, landing = [], 0
    for plane in range(len(spec.plane_rates_bps)):
        chunks = spec.chunk_stripes(plane)
        if any(chunks):
            plan = RankPlan(spec, rank, schedule, plane)
            exchanges.append(_Halving(plan, rank, range(spec.rank_count), distances, chunks, landing))
            landing += sum(map(len, chunks)) + len(distances)
    return exchanges


def halving_reduce_scatter(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Reduce-scatter by recursive halving. The ranks are a power of two."""
    size_bytes = spec.element_count * ELEMENT_BYTES
    rounding_bytes = len(spec.plane_rates_bps) * spec.rank_count.bit_length() * ELEMENT_BYTES
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes + rounding_bytes})
    for exchange in _chunk_exchanges(spec, rank, schedule):
        exchange.reduce_scatter(Readiness())
    return schedule


def doubling_all_gather(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-gather by recursive doubling. The ranks are a power of two."""
    schedule = RankSchedule(rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for exchange in _chunk_exchanges(spec, rank, schedule):
        exchange.all_gather(Readiness())
    return schedule
