"""All-to-all in two hops where several ranks share a host: over scale-up links to the right rail, then along the rail.

Each rank hands what it has for the ranks of one number, on all hosts, to the rank of that number on its own host. That
one packs what the ranks of its host have for each other host into one message to its peer there. So the network carries
messages between ranks of the same number alone, and of each pair of hosts as many as a host has ranks, not the square
of it (NCCL 2.12 calls it PXN).
"""

from __future__ import annotations

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.schedule_nodes import (
    DATA,
    SCRATCH,
    Copy,
    Delay,
    RankSchedule,
    WaitReceive,
    Write,
    run_immediate,
)
from weft.traffic.schedules.hierarchical import inside_cost
from weft.traffic.schedules.plan import RankPlan
from weft.traffic.schedules.spec import CollectiveSpec

_INSIDE_PLANE = 0
"""Scale-up links belong to no plane; their channels bear this number."""


def hierarchical_all_to_all(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Exchange inside hosts, then between them by rail."""
    exchange = _Exchange(spec, rank)
    if exchange.chunk_elements:
        exchange.inside()
        exchange.between()
    return exchange.schedule


class _Exchange:
    """One rank's part.

    The scratch buffer has three areas as large as the data: what came from the ranks of the host, by their numbers and
    the hosts that it is for; the messages to other hosts, by host and sending rank; the messages that came from them.
    """

    def __init__(self, spec: CollectiveSpec, rank: int) -> None:
        self.spec, self.rank = spec, rank
        size_bytes = spec.size_bytes
        self.schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: 3 * size_bytes})
        self.plans = [RankPlan(spec, rank, self.schedule, plane) for plane in range(len(spec.plane_rates_bps))]
        self.chunk_elements = spec.element_count // spec.rank_count
        self.host, self.local = divmod(spec.position(rank), spec.ranks_per_host)
        self.sent_inside: list[int] = []
        self.came_inside: dict[int, list[int]] = {}

    def _rank_at(self, host: int, local: int) -> int:
        return self.spec.rank_at(host * self.spec.ranks_per_host + local)

    def _came(self, local: int, host: int) -> range:
        """Return where the chunk lies that a rank of this host has for this rank's number on a host."""
        if local == self.local:
            raise ValueError("what a rank has for its own number stays in its data")
        return self._chunks(0, local * self.spec.host_count + host)

    def _chunks(self, area: int, first: int, count: int = 1) -> range:
        begin = area * self.spec.element_count + first * self.chunk_elements
        return range(begin, begin + count * self.chunk_elements)

    def _message(self, area: int, host: int) -> range:
        return self._chunks(area, host * self.spec.ranks_per_host, self.spec.ranks_per_host)

    def inside(self) -> None:
        """Give each rank of the host what is for its number; ranks of one number in a block follow each other."""
        spec, plan, stride = self.spec, self.plans[_INSIDE_PLANE], self.spec.rank_stride
        blocks = spec.host_count // stride
        for local in (each for each in range(spec.ranks_per_host) if each != self.local):
            channel = plan.channel_to(self._rank_at(self.host, local))
            for block in range(blocks):
                first_host, immediate = block * stride, run_immediate(spec.run_tag, block)
                source = self.spec.span(DATA, self._chunks(0, self._rank_at(first_host, local), stride))
                landing = self._chunks(0, self.local * spec.host_count + first_host, stride)
                self.sent_inside.append(
                    self.schedule.add(Write(channel, source, self.spec.span(SCRATCH, landing), immediate))
                )
            self.came_inside[local] = [
                self.schedule.add(WaitReceive(channel, run_immediate(spec.run_tag, block))) for block in range(blocks)
            ]

    def between(self) -> None:
        """Pack and send what is for each other host, and put what comes in its place."""
        spec = self.spec
        others = [(self.host + step) % spec.host_count for step in range(1, spec.host_count)]
        packed = {host: self._pack(host) for host in others}
        for host in others:
            self._send(host, packed[host])
        own_packed = [copy for copies in packed.values() for copy in copies]
        # The data may be overwritten once all that was in it has been copied, or is acknowledged.
        free = self.schedule.add(Delay(0), [*self.sent_inside, *own_packed])
        for local, came in self.came_inside.items():
            place = self.spec.span(DATA, self._chunks(0, self._rank_at(self.host, local)))
            source = self.spec.span(SCRATCH, self._came(local, self.host))
            self.schedule.add(Copy(place, source), [free, came[self.host // spec.rank_stride]])
        for host in others:
            self._place(host, [*self._await(host), free])

    def _pack(self, host: int) -> list[int]:
        """Gather what this host's ranks have for a host."""
        copies = []
        message = self._message(1, host)
        for local in range(self.spec.ranks_per_host):
            place = message[local * self.chunk_elements : (local + 1) * self.chunk_elements]
            if local == self.local:
                source, after = self.spec.span(DATA, self._chunks(0, self._rank_at(host, local))), []
            else:
                source = self.spec.span(SCRATCH, self._came(local, host))
                after = [self.came_inside[local][host // self.spec.rank_stride]]
            copies.append(self.schedule.add(Copy(self.spec.span(SCRATCH, place), source), after))
        return copies

    def _send(self, host: int, after: list[int]) -> None:
        message, landing = self._message(1, host), self._message(2, self.host)
        immediate = run_immediate(self.spec.run_tag, 0)
        for plan in self.plans:
            part = self.spec.stripe_of(message, plan.plane)
            if part:
                shift = landing.start - message.start
                target = self.spec.span(SCRATCH, range(part.start + shift, part.stop + shift))
                channel = plan.channel_to(self._rank_at(host, self.local))
                self.schedule.add(Write(channel, self.spec.span(SCRATCH, part), target, immediate), after)

    def _await(self, host: int) -> list[int]:
        message, peer = self._message(2, host), self._rank_at(host, self.local)
        return [plan.wait(peer, 0) for plan in self.plans if self.spec.stripe_of(message, plan.plane)]

    def _place(self, host: int, after: list[int]) -> None:
        message = self._message(2, host)
        for local in range(self.spec.ranks_per_host):
            source = message[local * self.chunk_elements : (local + 1) * self.chunk_elements]
            place = self._chunks(0, self._rank_at(host, local))
            self.schedule.add(Copy(self.spec.span(DATA, place), self.spec.span(SCRATCH, source)), after)


def hierarchical_all_to_all_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """One step inside, one along the rail, of all data but what stays on the host."""
    outside_bytes = nic_bytes(spec) * (spec.host_count - 1) / spec.host_count
    rail = Cost(1, links.between.message_ps(0), outside_bytes * links.between.ps_per_byte)
    return inside_cost(spec, links) + rail
