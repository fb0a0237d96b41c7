"""Recursive doubling: an all-reduce in the fewest steps, for data so small that steps are what takes time.

In each of log2(n) steps ranks exchange all that they have summed with a partner twice as far away (Thakur, Rabenseifner
and Gropp, "Optimization of collective communication operations in MPICH", 2005, section 4.5). With other numbers than
powers of two as many ranks as there are above it give their data to a neighbour first, and take the result in the end.

A sum must stay as it is until the partner has acknowledged it, which takes longer than the partner's own sum needs to
arrive. So each step sums into memory of its own, which lanes cannot name: schedules are graphs.
"""

from __future__ import annotations

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.schedule_nodes import DATA, SCRATCH, Copy, RankSchedule, Reduce, Span
from weft.traffic.schedules.halving_doubling import MESSAGE_BYTES, Members, powers_of_two_below
from weft.traffic.schedules.plan import RankPlan, cut
from weft.traffic.schedules.spec import CollectiveSpec


def recursive_doubling_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce by recursive doubling, nearest partners first. Scratch memory: the data once a step."""
    members = Members(spec)
    places = len(members.distances) + (1 if members.paired else 0)
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, SCRATCH: places * spec.size_bytes})
    for plane, stripe in enumerate(spec.stripes() if spec.rank_count > 1 else ()):
        plan = RankPlan(spec, rank, schedule, plane)
        for number, message in enumerate(cut(stripe, MESSAGE_BYTES, spec.element_bytes)):
            _Exchange(plan, members, message, number).add()
    return schedule


class _Exchange:
    """One rank's part in the exchange of a message's elements; each step's sums have a place in the scratch buffer."""

    def __init__(self, plan: RankPlan, members: Members, elements: range, number: int) -> None:
        self.plan, self.members, self.elements, self.number = plan, members, elements, number

    def add(self) -> None:
        """Add the rank's part: as a member, or as one that gives its data to a neighbour."""
        plan, members = self.plan, self.members
        neighbour, steps = members.neighbour(plan.rank), len(members.distances)
        if not members.takes_part(plan.rank):
            plan.write(neighbour, self.number, self.elements, self._place(steps), to=SCRATCH)
            plan.wait(neighbour, self.number)
            return
        held, ready = self._span(None), None
        if neighbour != plan.rank:
            ready = plan.reduce(self.elements, self._place(steps), [plan.wait(neighbour, self.number)])
        first_write: int | None = None
        for step, distance in enumerate(members.distances):
            peer = members.ranks[members.member(plan.rank) ^ distance]
            write = plan.write_span(peer, self.number, held, self._span(step), after=[ready])
            first_write = write if first_write is None else first_write
            arrived = plan.wait(peer, self.number)
            summed = Reduce(self._span(step), held, plan.spec.dtype, plan.spec.operation)
            held, ready = self._span(step), plan.schedule.add(summed, [ready, arrived])
        # The data themselves were sent first; they may change when that is acknowledged.
        plan.schedule.add(Copy(self._span(None), held), [ready, first_write])
        if neighbour != plan.rank:
            plan.write_span(neighbour, self.number, held, self._span(None), after=[ready])

    def _place(self, step: int) -> range:
        """Return the elements of the scratch buffer in which a step's sums are."""
        begin = step * self.plan.spec.element_count + self.elements.start
        return range(begin, begin + len(self.elements))

    def _span(self, step: int | None) -> Span:
        """Return where a step's sums are, and without a step where the data are."""
        spec = self.plan.spec
        return spec.span(DATA, self.elements) if step is None else spec.span(SCRATCH, self._place(step))


def recursive_doubling_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """log2(n) steps, each of all data, and two more for ranks beyond a power of two."""
    size_bytes, total = nic_bytes(spec), Cost(0, 0.0, 0.0)
    members = 1 << spec.rank_count.bit_length() - 1
    distances = powers_of_two_below(members) + ([spec.ranks_per_host] * 2 if members < spec.rank_count else [])
    for distance in distances:
        wire = links.inside if distance < spec.ranks_per_host else links.between
        busy_ps = size_bytes * wire.ps_per_byte
        total += Cost(1, wire.message_ps(size_bytes) - busy_ps, busy_ps)
    return total
