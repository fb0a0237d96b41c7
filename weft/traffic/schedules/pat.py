"""PAT, parallel aggregated trees: all-gather and reduce-scatter of any number of ranks in ⌈log2 n⌉ steps.

Every chunk has a binomial tree to the other ranks; at a step all trees use the same distance, so that a rank sends what
it has of all of them to one peer, as one message. An all-gather begins with the farthest peers, to which a rank sends
one chunk, and ends with its neighbour, to which it sends half of the data; a reduce-scatter goes the other way. That is
the algorithm of Bruck et al. with its dimensions reversed (Jeaugey, "PAT: a new algorithm for all-gather and
reduce-scatter operations at scale", arXiv 2506.20252, 2025; NCCL since 2.23).

A chunk's slot is the distance from its rank back to the rank that has it, modulo n. Memory has slots in the order of
their reversed bits, in which what a step sends is adjacent. It is for all of the data: where NCCL's buffers are smaller
than a step, it divides steps further; these do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.schedule_nodes import DATA, SCRATCH, Copy, RankSchedule, Reduce, Span
from weft.traffic.schedules.halving_doubling import MESSAGE_BYTES
from weft.traffic.schedules.plan import RankPlan, cut
from weft.traffic.schedules.spec import CollectiveSpec


@lru_cache(maxsize=64)
def slots_in_order(count: int) -> tuple[int, ...]:
    """Return the slots of `count` ranks in the order of their reversed bits."""
    order = [0]
    for bit in reversed(range((count - 1).bit_length())):
        order += [slot + (1 << bit) for slot in order if slot + (1 << bit) < count]
    return tuple(order)


class _Step:
    """The exchange at a distance of 2^bit: which slots, by their places in the order, go to which.

    The first `held` slots are multiples of twice the distance. All of them but `missing`, whose partner would be beyond
    the last slot, belong to one of the `moved` slots behind them, in the same order.
    """

    def __init__(self, count: int, bit: int) -> None:
        self.distance = 1 << bit
        self.held = -(-count // (2 << bit))
        self.moved = (count - 1 - self.distance) // (2 << bit) + 1
        self.missing: int | None = None
        if self.moved < self.held:
            self.missing = slots_in_order(count).index((self.held - 1) * (2 << bit))

    def runs(self) -> list[tuple[range, range]]:
        """Return places among the held slots, adjacent ones together, and the places of those that they belong to."""
        cuts = [range(self.held)] if self.missing is None else [range(self.missing), range(self.missing + 1, self.held)]
        begin, found = self.held, []
        for places in filter(None, cuts):
            found.append((places, range(begin, begin + len(places))))
            begin += len(places)
        return found


@lru_cache(maxsize=64)
def _steps(count: int) -> tuple[_Step, ...]:
    """Return the steps, the farthest first."""
    return tuple(_Step(count, bit) for bit in reversed(range((count - 1).bit_length())))


@lru_cache(maxsize=64)
def _lengths(spec: CollectiveSpec, plane: int) -> list[int]:
    """Return the length of the plane's share of each position's chunk."""
    chunks = spec.chunk_stripes(plane)
    return [len(chunks[spec.rank_at(position)]) for position in range(spec.rank_count)]


@lru_cache(maxsize=4096)
def _begins(spec: CollectiveSpec, plane: int, position: int) -> list[int]:
    """Return where each place's elements begin in the scratch buffer of the rank at a position, and the last ends."""
    first = sum(sum(_lengths(spec, before)) for before in range(plane))
    lengths, count = _lengths(spec, plane), spec.rank_count
    return list(accumulate((lengths[(position + slot) % count] for slot in slots_in_order(count)), initial=first))


def _arriving(spec: CollectiveSpec, planes: int) -> int:
    """Return the most elements that arrive at a rank of a reduce-scatter over the first planes."""
    return sum((spec.rank_count - 1) * max(_lengths(spec, plane)) for plane in range(planes))


class _Trees:
    """A rank's part in all trees, over one plane."""

    def __init__(self, plan: RankPlan) -> None:
        self.plan, self.spec = plan, plan.spec
        self.count, self.position = plan.spec.rank_count, plan.spec.position(plan.rank)
        self.steps = _steps(self.count)

    def peer(self, distance: int) -> tuple[int, list[int]]:
        """Return the rank so many positions further on, and where its places' elements begin."""
        position = (self.position + distance) % self.count
        return self.spec.rank_at(position), _begins(self.spec, self.plan.plane, position)

    def copies(self, places: range, *, to_data: bool, after: Sequence[int] = ()) -> list[int]:
        """Copy the chunks at some places between the data and the scratch buffer; return the steps."""
        _, begins = self.peer(0)
        steps = []
        for place in places:
            elements = range(begins[place], begins[place + 1])
            if elements:
                owner = self.spec.rank_at((self.position + slots_in_order(self.count)[place]) % self.count)
                chunk = self.spec.stripe_of(self.spec.chunk(owner), self.plan.plane)
                data, scratch = self.spec.span(DATA, chunk), self.spec.span(SCRATCH, elements)
                steps.append(self.plan.schedule.add(Copy(data, scratch) if to_data else Copy(scratch, data), after))
        return steps

    def messages(self, elements: range) -> list[range]:
        """Return elements as messages; empty ones are none."""
        return cut(elements, MESSAGE_BYTES, self.spec.element_bytes)

    def all_gather(self) -> None:
        """Pass the chunks on, from the farthest peers to the nearest."""
        ready, (_, own) = self.copies(range(1), to_data=False), self.peer(0)
        for step in self.steps:
            peer, theirs = self.peer(-step.distance)
            number = 0
            for held, moved in step.runs():
                for message in self.messages(range(own[held.start], own[held.stop])):
                    begin = theirs[moved.start] + message.start - own[held.start]
                    source, target = self._spans(message, begin)
                    self.plan.write_span(peer, number, source, target, ready)
                    number += 1
            peer, theirs = self.peer(step.distance)
            sent = [self.messages(range(theirs[held.start], theirs[held.stop])) for held, _ in step.runs()]
            arrived = [self.plan.wait(peer, number) for number in range(sum(map(len, sent)))]
            self.copies(range(step.held, step.held + step.moved), to_data=True, after=arrived)
            ready = [*ready, *arrived]

    def reduce_scatter(self) -> None:
        """Pass the sums of chunks on, from the nearest peers to the farthest."""
        ready, (_, own) = self.copies(range(self.count), to_data=False), self.peer(0)
        for step in reversed(self.steps):
            peer, _ = self.peer(step.distance)
            landing = self._landing(self.position + step.distance, step)
            moved = range(own[step.held], own[step.held + step.moved])
            for number, message in enumerate(self.messages(moved)):
                source, target = self._spans(message, landing + message.start - moved.start)
                self.plan.write_span(peer, number, source, target, ready)
            peer, theirs = self.peer(-step.distance)
            coming = self.messages(range(theirs[step.held], theirs[step.held + step.moved]))
            arrived = [self.plan.wait(peer, number) for number in range(len(coming))]
            landing, summed = self._landing(self.position, step), []
            for held, _ in step.runs():
                elements = range(own[held.start], own[held.stop])
                if elements:
                    partial, target = self._spans(range(landing, landing + len(elements)), elements.start)
                    reduce = Reduce(target, partial, self.spec.dtype, self.spec.operation)
                    summed.append(self.plan.schedule.add(reduce, [*ready, *arrived]))
                    landing += len(elements)
            ready = summed or ready
        self.copies(range(1), to_data=True, after=ready)

    def _spans(self, elements: range, target: int) -> tuple[Span, Span]:
        """Return the spans of some elements of a scratch buffer, and of as many from `target` on."""
        target_elements = range(target, target + len(elements))
        return self.spec.span(SCRATCH, elements), self.spec.span(SCRATCH, target_elements)

    def _landing(self, position: int, step: _Step) -> int:
        """Return where in the scratch buffer of the rank at a position a step's sums arrive, behind its own."""
        begins = _begins(self.spec, self.plan.plane, position % self.count)
        before = self.steps[self.steps.index(step) + 1 :]
        earlier = sum(begins[held.stop] - begins[held.start] for each in before for held, _ in each.runs())
        return self.spec.element_count + _arriving(self.spec, self.plan.plane) + earlier


def pat_all_gather(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-gather by parallel aggregated trees."""
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, SCRATCH: spec.size_bytes})
    for trees in _of_planes(spec, rank, schedule):
        trees.all_gather()
    return schedule


def pat_reduce_scatter(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Reduce-scatter by parallel aggregated trees. Scratch memory: the sums, and what arrives."""
    scratch = spec.element_count + _arriving(spec, len(spec.plane_rates_bps))
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, SCRATCH: scratch * spec.element_bytes})
    for trees in _of_planes(spec, rank, schedule):
        trees.reduce_scatter()
    return schedule


def _of_planes(spec: CollectiveSpec, rank: int, schedule: RankSchedule) -> list[_Trees]:
    planes = range(len(spec.plane_rates_bps) if spec.rank_count > 1 else 0)
    return [_Trees(RankPlan(spec, rank, schedule, plane)) for plane in planes]


def pat_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """⌈log2(n)⌉ steps, each of as many chunks as have a tree with an edge of its distance."""
    chunk_bytes, total = nic_bytes(spec) / spec.rank_count, Cost(0, 0.0, 0.0)
    for step in _steps(spec.rank_count):
        wire = links.inside if step.distance < spec.ranks_per_host else links.between
        busy_ps = step.moved * chunk_bytes * wire.ps_per_byte
        total += Cost(1, wire.message_ps(step.moved * chunk_bytes) - busy_ps, busy_ps)
    return total
