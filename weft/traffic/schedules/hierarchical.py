"""All-reduce in three phases where several ranks share a host with scale-up links faster than its NICs.

Inside every host a reduce-scatter leaves each rank one chunk; ranks of the same number on all hosts all-reduce it by
rings over their own NICs, so that every rail carries as much; an all-gather inside every host ends it. A NIC carries
2(h-1)/h of a chunk, 1/r of the data, for h hosts of r ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes, pipelined
from weft.traffic.lane_schedule import REDUCE, WAIT, WRITE, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.plan import cut
from weft.traffic.schedules.ring import Ring
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly


class HostExchange:
    """The exchange among the ranks of one host, from the view of one: every rank writes to every other at once."""

    def __init__(self, plan: LanePlan, chunks: list[range]) -> None:
        spec = plan.spec
        self.plan, self.chunks = plan, chunks
        self.host, self.local = divmod(spec.position(plan.rank), spec.ranks_per_host)
        self.others = [(self.local + step) % spec.ranks_per_host for step in range(1, spec.ranks_per_host)]
        self.piece_counts = [len(cut(chunk, spec.piece_bytes, spec.element_bytes)) for chunk in chunks]
        self.pieces = [plan.pieces_of(chunk) for chunk in chunks]

    def _channel_to(self, local: int) -> Formula:
        spec = self.plan.spec
        return self.plan.channel(spec.rank_at(self.host * spec.ranks_per_host + local))

    def _landing_offset(self, to: int, source: int) -> int:
        """Elements from a piece's place to where it lands: what comes from each rank has a place of its own."""
        spec = self.plan.spec
        first = spec.element_count + self.chunks[0].start + self.plan.plane * spec.ranks_per_host
        before = (source - to) % spec.ranks_per_host - 1
        return first + before * len(self.chunks[to]) - self.chunks[to].start

    def reduce_scatter(self, marks: int) -> None:
        """Reduce the rank's own chunk, and mark what is reduced."""
        plan, schedule, own = self.plan, self.plan.schedule, self.local
        for other in self.others:
            if self.piece_counts[other]:
                schedule.add_lanes(self.piece_counts[other])
                schedule.add_loop(1, schedule.add_grid(self.piece_counts[other], WRITE))
                offset = self._landing_offset(other, own)
                plan.send(self.pieces[other], self._channel_to(other), to_scratch=True, shift=offset, slot=0)
        if self.piece_counts[own]:
            schedule.add_lanes(self.piece_counts[own])
            grid = schedule.add_grid(self.piece_counts[own], *[WAIT, REDUCE] * len(self.others))
            schedule.add_loop(1, grid)
            for place, other in enumerate(self.others):
                plan.receive(self.pieces[own], self._channel_to(other), slot=2 * place)
                offset = self._landing_offset(own, other)
                schedule.reduce(self.pieces[own], shift=offset, slot=2 * place + 1)
            schedule.mark_elements(self.pieces[own], marks)

    def all_gather(self, marks: int) -> None:
        """Give the rank's own chunk to the others as it is marked, and take theirs."""
        plan, schedule, own = self.plan.from_transfer(max(self.piece_counts)), self.plan.schedule, self.local
        for other in self.others:
            if self.piece_counts[own]:
                schedule.add_lanes(self.piece_counts[own])
                schedule.add_loop(1, schedule.add_grid(self.piece_counts[own], WRITE))
                schedule.await_elements(self.pieces[own], marks)
                plan.send(self.pieces[own], self._channel_to(other), slot=0)
            if self.piece_counts[other]:
                schedule.add_lanes(self.piece_counts[other])
                schedule.add_loop(1, schedule.add_grid(self.piece_counts[other], WAIT))
                plan.receive(self.pieces[other], self._channel_to(other), slot=0)


Between: TypeAlias = Callable[[LanePlan, HostExchange, range, int], int]
"""Adds the all-reduce of a chunk between hosts: the plan of a plane, the exchange inside hosts, the chunk's elements,
and marks of those that the host has reduced. Returns marks of those that all hosts have reduced."""


def all_reduce_inside_and_between(spec: CollectiveSpec, rank: int, between: Between) -> LaneSchedule:
    """All-reduce inside hosts, between them by rail, inside them again."""
    size_bytes = spec.size_bytes
    # What comes from other hosts lands as far on as its place; behind that is what comes from the host's ranks, whose
    # chunks are rounded up.
    rounding_bytes = len(spec.plane_rates_bps) * spec.ranks_per_host * spec.element_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: 2 * size_bytes + rounding_bytes})
    for plane, stripe in enumerate(spec.stripes()):
        if not stripe:
            continue
        plan = LanePlan(spec, rank, schedule, plane)
        chunks = split_evenly(stripe, spec.ranks_per_host)
        host = HostExchange(plan, chunks)
        ready = schedule.add_marks()
        host.reduce_scatter(ready)
        own = chunks[host.local]
        if spec.host_count > 1 and own:
            ready = between(plan, host, own, ready)
        host.all_gather(ready)
    return schedule


def hierarchical_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce by rings between hosts."""
    return all_reduce_inside_and_between(spec, rank, _ring_between)


def _ring_between(plan: LanePlan, host: HostExchange, elements: range, ready: int) -> int:
    spec = plan.spec
    ring = Ring(
        plan,
        host.host,
        lambda other: spec.rank_at(other * spec.ranks_per_host + host.local),
        ChunkTable.evenly(elements, spec.host_count),
    )
    reduced = plan.schedule.add_marks()
    ring.reduce_scatter(after=ready, marks=reduced)
    ring.all_gather(marks=reduced, goes_on=True)
    return reduced


def inside_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """Return the cost of a reduce-scatter or an all-gather inside a host: every rank to every other at once."""
    chunk_bytes = nic_bytes(spec) / spec.ranks_per_host
    busy_ps = (spec.ranks_per_host - 1) * chunk_bytes * links.inside.ps_per_byte
    return Cost(1, links.inside.message_ps(0), busy_ps)


def hierarchical_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """One step inside, 2(h-1) between h hosts of a rail's share, one inside."""
    steps = 2 * (spec.host_count - 1)
    chunk_bytes = nic_bytes(spec) / spec.rank_count
    step_ps = links.between.message_ps(piece_bytes(chunk_bytes, spec))
    between = pipelined(steps, step_ps, steps * chunk_bytes * links.between.ps_per_byte)
    return inside_cost(spec, links) + between + inside_cost(spec, links)
