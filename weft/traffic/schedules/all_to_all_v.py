"""All-to-all-v: what rank i has for rank j, of a size of its own, goes to rank j.

A rank's input has what it sends in order of the receivers, its result what it gets in order of the senders. Messages
land in the scratch buffer, in their places of the result, which is copied to the data when all of it is there and the
rank's own messages are acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from weft.quantities.arrays import Integers
from weft.traffic.costs import Cost, Links
from weft.traffic.pair_sizes import PairSizes, between_hosts, between_ranks, largest_sum
from weft.traffic.schedule_nodes import DATA, SCRATCH, Copy, RankSchedule, Write, run_immediate
from weft.traffic.schedules.plan import RankPlan
from weft.traffic.schedules.spec import CollectiveSpec


def direct_all_to_all_v(sizes: PairSizes, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write to all other ranks at once, to the next one first; the NIC shares the link among them."""
    part = _Part(sizes, spec, rank)
    for peer in part.others_after():
        part.send(peer, 0, DATA, part.outgoing(peer), part.place_at(peer))
    for peer in part.others_before():
        part.receive(peer, 0, part.incoming(peer))
    return part.finished()


def pairwise_all_to_all_v(sizes: PairSizes, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Write to the next rank, then to the one after it, and so on: a step begins when the previous one is done."""
    part = _Part(sizes, spec, rank)
    done: list[int] = []
    for peer, source in zip(part.others_after(), part.others_before(), strict=True):
        sent = part.send(peer, 0, DATA, part.outgoing(peer), part.place_at(peer), done)
        done = [*sent, *part.receive(source, 0, part.incoming(source), done)] or done
    return part.finished()


def hierarchical_all_to_all_v(sizes: PairSizes, spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Hand what is for another host to the rank of the receiver's number on the own host, which sends it on.

    So the network carries messages between ranks of the same number alone, as in a hierarchical all-to-all.
    """
    part = _Part(sizes, spec, rank)
    host, own = divmod(spec.position(rank), spec.ranks_per_host)
    hosts, locals_ = range(spec.host_count), range(spec.ranks_per_host)

    def at(of_host: int, local: int) -> int:
        return spec.rank_at(of_host * spec.ranks_per_host + local)

    for local in (each for each in locals_ if each != own):
        peer = at(host, local)
        # The peer's number for a message is the receiver's host.
        for to in hosts:
            target = at(to, local)
            landing = part.place_at(target) if to == host else part.relayed(peer, to, own)
            part.send(peer, to, DATA, part.outgoing(target), landing)
    for local in locals_:
        peer = at(host, local)
        for to in (each for each in hosts if each != host):
            source, after = part.outgoing(at(to, own), peer), []
            if local != own:
                source = part.relayed(rank, to, local)
                after = part.receive(peer, to, source)
            buffer = DATA if local == own else SCRATCH
            part.send(at(to, own), local, buffer, source, part.place_at(at(to, own), peer), after)
        if local != own:
            part.receive(peer, host, part.incoming(peer))
    for of in (each for each in hosts if each != host):
        for local in locals_:
            part.receive(at(of, own), local, part.incoming(at(of, local)))
    return part.finished()


class _Layout:
    """Where everything lies, of all ranks: elements from each rank to each, and where these begin at either end."""

    def __init__(self, sizes: Integers) -> None:
        self.sizes: list[list[int]] = sizes.tolist()
        self.sent: list[list[int]] = (np.cumsum(sizes, axis=1) - sizes).tolist()
        self.received: list[list[int]] = (np.cumsum(sizes, axis=0) - sizes).tolist()
        self.result: list[int] = sizes.sum(axis=0).tolist()


@lru_cache(maxsize=4)
def _layout(sizes: PairSizes, spec: CollectiveSpec) -> _Layout:
    return _Layout(sizes.elements(spec))


class _Part:
    """One rank's messages."""

    def __init__(self, sizes: PairSizes, spec: CollectiveSpec, rank: int) -> None:
        self.spec, self.rank = spec, rank
        self.layout = _layout(sizes, spec)
        self._relays: dict[int, dict[tuple[int, int], range]] = {}
        data_bytes = spec.size_bytes
        self.schedule = RankSchedule(rank, {DATA: data_bytes, SCRATCH: data_bytes})
        self.plans = [RankPlan(spec, rank, self.schedule, plane) for plane in range(len(spec.plane_rates_bps))]
        self._steps: list[int] = []

    def others_after(self) -> Iterable[int]:
        """Yield the other ranks, from the next position on."""
        return (self._away(step) for step in range(1, self.spec.rank_count))

    def others_before(self) -> Iterable[int]:
        """Yield the other ranks, from the previous position back."""
        return (self._away(-step) for step in range(1, self.spec.rank_count))

    def _away(self, distance: int) -> int:
        return self.spec.rank_at((self.spec.position(self.rank) + distance) % self.spec.rank_count)

    def outgoing(self, to: int, source: int | None = None) -> range:
        """Return the elements of a rank's input, by default this one's, that are for another."""
        source = self.rank if source is None else source
        begin = self.layout.sent[source][to]
        return range(begin, begin + self.layout.sizes[source][to])

    def incoming(self, source: int) -> range:
        """Return where what a rank sends stands in the result."""
        begin = self.layout.received[source][self.rank]
        return range(begin, begin + self.layout.sizes[source][self.rank])

    def place_at(self, to: int, source: int | None = None) -> range:
        """Return where what a rank sends, by default this one, stands in the result of another."""
        source = self.rank if source is None else source
        begin = self.layout.received[source][to]
        return range(begin, begin + self.layout.sizes[source][to])

    def relayed(self, relay: int, to_host: int, local: int) -> range:
        """Return where, in a relay's scratch buffer, what its host's rank of that number has for a host lands."""
        places = self._relays.get(relay)
        if places is None:
            places = self._relays[relay] = self._relay_places(relay)
        return places[to_host, local]

    def _relay_places(self, relay: int) -> dict[tuple[int, int], range]:
        spec, places = self.spec, {}
        host, own = divmod(spec.position(relay), spec.ranks_per_host)
        begin = spec.element_count
        for to in (each for each in range(spec.host_count) if each != host):
            target = spec.rank_at(to * spec.ranks_per_host + own)
            for local in (each for each in range(spec.ranks_per_host) if each != own):
                source = spec.rank_at(host * spec.ranks_per_host + local)
                end = begin + self.layout.sizes[source][target]
                places[to, local] = range(begin, end)
                begin = end
        if relay == self.rank:
            self.schedule.buffer_bytes[SCRATCH] = begin * spec.element_bytes
        return places

    def send(
        self, peer: int, number: int, buffer: str, source: range, landing: range, after: Iterable[int] = ()
    ) -> list[int]:
        """Write elements of a buffer to a rank's scratch buffer, over all planes; returns the steps."""
        shift, steps = landing.start - source.start, []
        for plan in self.plans:
            if part := self.spec.stripe_of(source, plan.plane):
                target = range(part.start + shift, part.stop + shift)
                write = Write(
                    plan.channel_to(peer),
                    self.spec.span(buffer, part),
                    self.spec.span(SCRATCH, target),
                    run_immediate(self.spec.run_tag, number),
                )
                steps.append(self.schedule.add(write, after))
        self._steps.extend(steps)
        return steps

    def receive(self, peer: int, number: int, elements: range, after: Iterable[int] = ()) -> list[int]:
        """Wait for a rank's message of that number and these elements; returns the steps, one a plane."""
        stripes = ((plan, self.spec.stripe_of(elements, plan.plane)) for plan in self.plans)
        waits = [plan.wait(peer, number, after) for plan, part in stripes if part]
        self._steps.extend(waits)
        return waits

    def finished(self) -> RankSchedule:
        """Copy what the rank has for itself, and the result to its place after everything else."""
        own, result = self.outgoing(self.rank), range(self.layout.result[self.rank])
        if own:
            place = self.spec.span(SCRATCH, self.place_at(self.rank))
            self._steps.append(self.schedule.add(Copy(place, self.spec.span(DATA, own))))
        if result:
            self.schedule.add(Copy(self.spec.span(DATA, result), self.spec.span(SCRATCH, result)), self._steps)
        return self.schedule


def _bytes_per_nic(sizes: Integers, spec: CollectiveSpec) -> float:
    """Return the bytes that the NIC of the largest share carries of the largest sum of a rank."""
    elements = largest_sum(sizes)
    share = max(spec.plane_rates_bps) / sum(spec.plane_rates_bps)
    return elements * spec.element_bytes * share


def direct_cost(sizes: PairSizes, spec: CollectiveSpec, links: Links) -> Cost:
    """One step, of what the busiest rank sends or receives; what stays on its host takes scale-up links."""
    elements = between_ranks(sizes.elements(spec))
    outside = between_hosts(elements, spec)
    outside_ps = _bytes_per_nic(outside, spec) * links.between.ps_per_byte
    inside_ps = _bytes_per_nic(elements - outside, spec) * links.inside.ps_per_byte
    return Cost(1, links.between.message_ps(0), max(outside_ps, inside_ps))


def pairwise_cost(sizes: PairSizes, spec: CollectiveSpec, links: Links) -> Cost:
    """n-1 steps, each as long as its largest message."""
    ranks = spec.rank_count
    order = [spec.rank_at(position) for position in range(ranks)]
    elements = sizes.elements(spec)[np.ix_(order, order)]
    rows = np.arange(ranks)
    largest = [elements[rows, (rows + step) % ranks].max() for step in range(1, ranks)]
    share = max(spec.plane_rates_bps) / sum(spec.plane_rates_bps)
    steps_bytes = [float(each) * spec.element_bytes * share for each in largest]
    busy_ps = sum(steps_bytes) * links.between.ps_per_byte
    total_ps = sum(links.between.message_ps(each) for each in steps_bytes)
    return Cost(ranks - 1, total_ps - busy_ps, busy_ps)


def hierarchical_cost(sizes: PairSizes, spec: CollectiveSpec, links: Links) -> Cost:
    """One step inside, one along the rail, of what the busiest relay passes on."""
    elements = between_hosts(sizes.elements(spec), spec)
    number = np.array([spec.position(rank) % spec.ranks_per_host for rank in range(spec.rank_count)])
    host = np.array([spec.position(rank) // spec.ranks_per_host for rank in range(spec.rank_count)])
    relayed = np.zeros((spec.rank_count, spec.rank_count), np.int64)
    relays = np.empty((spec.host_count, spec.ranks_per_host), np.int64)
    relays[host, number] = np.arange(spec.rank_count)
    for source in range(spec.rank_count):
        np.add.at(relayed, (relays[host[source], number], np.arange(spec.rank_count)), elements[source])
    rail_ps = _bytes_per_nic(relayed, spec) * links.between.ps_per_byte
    inside_ps = _bytes_per_nic(between_ranks(sizes.elements(spec)), spec) * links.inside.ps_per_byte
    return Cost(2, links.inside.message_ps(0) + links.between.message_ps(0), inside_ps + rail_ps)
