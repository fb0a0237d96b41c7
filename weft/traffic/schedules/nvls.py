"""Collectives by the switches inside hosts, which reduce and multicast (NVLink SHARP), and rings between hosts.

Among n ranks of one host, an all-reduce carries its data over each rank's link once each way: the rank's terms up, the
results down. A reduce-scatter carries all data up and 1/n down, an all-gather 1/n up and all down, because a multicast
goes to its sender, too. Across hosts, an all-reduce is a reduce-scatter inside every host, an exchange between ranks of
the same number on all hosts, over their own NICs, and an all-gather inside every host: 1 + 1/n times the data on each
rank's link, each way, as for NCCL's kernels, which load sums and store them by multicast.

Data goes in pieces, so that the exchange between hosts begins with the first results and multicasts follow it. All
ranks of a host give the switch the same pieces in the same order, since a result waits for its last term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

from weft.traffic.costs import Cost, Links, nic_bytes, piece_bytes, pipelined
from weft.traffic.lane_schedule import WAIT, WRITE, Chunk, ChunkTable, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.plan import MAX_PIECES, MAX_PIECES_IN_A_HOST, piece_count
from weft.traffic.schedules.ring import Ring
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import split_evenly

Parts: TypeAlias = Sequence[Sequence[range]]
"""Elements that a host's switch reduces or multicasts, in order: of each part a chunk for each rank of the host."""
_PIECES_UNDER_WAY = 4
"""Pieces that each rank gives to the switch before the first one's result."""


class HostSwitch:
    """The switch of a rank's host, from the view of the rank."""

    def __init__(self, plan: LanePlan, streams: int = 1) -> None:
        """Take by turns the `streams` of each chunk that the exchange between hosts carries at the same time."""
        spec = plan.spec
        self.plan, self.count, self.streams = plan, spec.host_size, streams
        self.host, self.local = divmod(spec.position(plan.rank), self.count)
        self.others = [local for local in range(self.count) if local != self.local]

    def all_reduce(self, elements: range) -> int:
        """Reduce elements for all ranks; returns how many transfers that takes."""
        plan, others = self.plan, self.others
        pieces = self._pieces([elements])
        piece = plan.pieces_of(elements)
        self._begin(pieces, WRITE, *[WRITE, WAIT] * len(others))
        self._multicast(piece, terms=self.count)
        for slot, other in enumerate(others, self.count):
            self._receive(piece, other, slot)
        return pieces

    def reduce_scatter(self, parts: Parts, marks: int | None = None) -> int:
        """Reduce the rank's own chunks, and mark what is reduced; returns how many transfers that takes.

        With marks, few pieces are under way, so that what goes up for other reasons does not wait behind all of them.
        """
        schedule, others = self.plan.schedule, self.others
        of_ranks = self._cut(parts)
        own = self._lanes_of(of_ranks[self.local])
        self._begin(len(of_ranks[0]), *[WRITE] * self.count, *[WAIT] * len(others))
        if marks is not None:
            nothing = [of_ranks[self.local][0][:0]] * _PIECES_UNDER_WAY
            schedule.await_elements(self._lanes_of([*nothing, *of_ranks[self.local]]), marks)
        for local, of_rank in enumerate(of_ranks):
            if local == self.local:
                self._send(own, others[0], local, terms=self.count, is_to_itself=True)
            else:
                self._send(self._lanes_of(of_rank), local, local, terms=self.count)
        for slot, other in enumerate(others, self.count):
            self._receive(own, other, slot)
        if marks is not None:
            schedule.mark_elements(own, marks)
        return len(of_ranks[0])

    def all_gather(self, parts: Parts, marks: int | None = None) -> int:
        """Give the rank's own chunks to the others, as they are marked, and take theirs; returns how many transfers."""
        of_ranks = self._cut(parts)
        own = self._lanes_of(of_ranks[self.local])
        self._begin(len(of_ranks[0]), *[WRITE] * self.count)
        if marks is not None:
            self.plan.schedule.await_elements(own, marks)
        self._multicast(own)
        self._begin(len(of_ranks[0]), *[WAIT] * len(self.others))
        for slot, other in enumerate(self.others):
            self._receive(self._lanes_of(of_ranks[other]), other, slot)
        return len(of_ranks[0])

    def _cut(self, parts: Parts) -> list[list[range]]:
        """Return the pieces of each rank's chunks, as many for all, in order; some of short chunks are empty."""
        of_ranks: list[list[range]] = [[] for _ in range(self.count)]
        for chunks in parts:
            pieces = self._pieces(chunks)
            for of_rank, chunk in zip(of_ranks, chunks, strict=True):
                each = [
                    split_evenly(stream, -(-pieces // self.streams)) for stream in split_evenly(chunk, self.streams)
                ]
                of_rank += chain.from_iterable(zip(*each, strict=True))
        return of_ranks

    def _lanes_of(self, pieces: Sequence[range]) -> Chunk:
        """Return pieces of which each lane has one."""
        return Chunk(self.plan.schedule.add_table(ChunkTable.of(pieces)), 0, 0, 1)

    def _pieces(self, chunks: Sequence[range]) -> int:
        """Return into how many pieces each chunk is cut."""
        spec = self.plan.spec
        largest_bytes = max(map(len, chunks)) * spec.element_bytes
        most = MAX_PIECES_IN_A_HOST if spec.is_within_a_host else MAX_PIECES
        return piece_count(largest_bytes, spec.piece_bytes, most)

    def _begin(self, pieces: int, *kinds: str) -> None:
        """Begin a lane for each piece, which goes once through steps of these kinds."""
        schedule = self.plan.schedule
        schedule.add_lanes(pieces)
        schedule.add_loop(1, schedule.add_grid(pieces, *kinds))

    def _multicast(self, piece: Chunk, terms: int = 1) -> None:
        """Send the lane's piece up once, from where it comes back and goes to all others."""
        self._send(piece, self.others[0], 0, terms=terms, is_to_itself=True)
        for slot, other in enumerate(self.others, 1):
            self._send(piece, other, slot, terms=terms, is_copy=True)

    def _send(
        self, piece: Chunk, local: int, slot: int, *, terms: int = 1, is_copy: bool = False, is_to_itself: bool = False
    ) -> None:
        channel = self.plan.channel(self._rank(local))
        self.plan.send(piece, channel, slot=slot, terms=terms, is_copy=is_copy, is_to_itself=is_to_itself)

    def _receive(self, piece: Chunk, local: int, slot: int) -> None:
        self.plan.receive(piece, self.plan.channel(self._rank(local)), slot=slot)

    def _rank(self, local: int) -> int:
        return self.plan.spec.rank_at(self.host * self.count + local)


class _Rail:
    """A rank's ring over all hosts, through ranks of the same number, with a chunk for each."""

    def __init__(self, plan: LanePlan, chunks: ChunkTable) -> None:
        spec = plan.spec
        host, local = divmod(spec.position(plan.rank), spec.host_size)
        self.ring = Ring(plan, host, lambda other: spec.rank_at(other * spec.host_size + local), chunks)
        self.order = [(host - step) % chunks.count for step in range(chunks.count)]
        """Hosts' chunks as a ring's all-gather has them: the own one, then the host before's, …"""

    def reduced_in_order(self, of_hosts: Parts) -> Parts:
        """Return hosts' chunks as a ring's reduce-scatter takes them: the host before first, the own one last."""
        return [of_hosts[number] for number in (*self.order[1:], self.order[0])]


Between: TypeAlias = Callable[[LanePlan, range, int], int]
"""Adds the all-reduce of a chunk between hosts: the plan of a plane, the chunk's elements, and marks of those that the
host has reduced. Returns marks of those that all hosts have reduced."""


def nvls_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce by the host's switch, between hosts by a ring for each rail."""
    if spec.is_within_a_host:
        schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
        for plane, stripe in enumerate(spec.stripes()):
            if stripe:
                HostSwitch(LanePlan(spec, rank, schedule, plane)).all_reduce(stripe)
        return schedule
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes, SCRATCH: spec.size_bytes})
    for plane, stripe in enumerate(spec.stripes()):
        if stripe:
            _all_reduce_by_rings(LanePlan(spec, rank, schedule, plane), stripe)
    return schedule


def _all_reduce_by_rings(plan: LanePlan, stripe: range) -> None:
    """A host reduces each rail's chunk in the order in which the ring takes its parts."""
    spec, schedule = plan.spec, plan.schedule
    parts = [split_evenly(chunk, spec.host_count) for chunk in split_evenly(stripe, spec.host_size)]
    switch = HostSwitch(plan)
    ready, reduced = schedule.add_marks(), schedule.add_marks()
    rail = _Rail(plan, ChunkTable.of(parts[switch.local]))
    of_hosts = [[of_rank[number] for of_rank in parts] for number in range(spec.host_count)]
    transfers = switch.reduce_scatter(rail.reduced_in_order(of_hosts), ready)
    if any(parts[switch.local]):
        rail.ring.reduce_scatter(after=ready, marks=reduced)
        rail.ring.all_gather(marks=reduced, goes_on=True)
    HostSwitch(plan.from_transfer(transfers)).all_gather([of_hosts[number] for number in rail.order], reduced)


def all_reduce_by_switch_and(
    between: Between, spec: CollectiveSpec, rank: int, *, scratch_bytes: int, streams: int
) -> LaneSchedule:
    """All-reduce by the host's switch, and between hosts in any way that takes elements of each stream in order."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes} | ({SCRATCH: scratch_bytes} if scratch_bytes else {}))
    for plane, stripe in enumerate(spec.stripes()):
        if not stripe:
            continue
        plan = LanePlan(spec, rank, schedule, plane)
        chunks = split_evenly(stripe, spec.host_size)
        switch, ready = HostSwitch(plan, streams), schedule.add_marks()
        transfers = switch.reduce_scatter([chunks], ready)
        own = chunks[switch.local]
        reduced = between(plan, own, ready) if own else ready
        HostSwitch(plan.from_transfer(transfers), streams).all_gather([chunks], reduced)
    return schedule


def nvls_reduce_scatter(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce-scatter by the host's switch, then between hosts by a ring for each rail."""
    between = {} if spec.is_within_a_host else {SCRATCH: spec.size_bytes}
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes} | between)
    for plane in range(len(spec.plane_rates_bps)):
        plan = LanePlan(spec, rank, schedule, plane)
        of_hosts = _chunks_of_hosts(spec, plane)
        if not any(map(any, of_hosts)):
            continue
        if len(of_hosts) == 1:
            HostSwitch(plan).reduce_scatter(of_hosts)
            continue
        ready, local = schedule.add_marks(), HostSwitch(plan).local
        rail = _Rail(plan, ChunkTable.of([chunks[local] for chunks in of_hosts]))
        HostSwitch(plan).reduce_scatter(rail.reduced_in_order(of_hosts), ready)
        rail.ring.reduce_scatter(after=ready)
    return schedule


def nvls_all_gather(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-gather between hosts by a ring for each rail; each host's switch multicasts what comes."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    for plane in range(len(spec.plane_rates_bps)):
        plan = LanePlan(spec, rank, schedule, plane)
        of_hosts = _chunks_of_hosts(spec, plane)
        if not any(map(any, of_hosts)):
            continue
        if len(of_hosts) == 1:
            HostSwitch(plan).all_gather(of_hosts)
            continue
        gathered, local = schedule.add_marks(), HostSwitch(plan).local
        rail = _Rail(plan, ChunkTable.of([chunks[local] for chunks in of_hosts]))
        rail.ring.all_gather(marks=gathered)
        own, *others = rail.order
        transfers = HostSwitch(plan).all_gather([of_hosts[own]])
        HostSwitch(plan.from_transfer(transfers)).all_gather([of_hosts[number] for number in others], gathered)
    return schedule


def _chunks_of_hosts(spec: CollectiveSpec, plane: int) -> list[list[range]]:
    """Return the plane's share of the chunks of every host's ranks."""
    stripes, size = spec.chunk_stripes(plane), spec.host_size
    hosts = range(0, spec.rank_count, size)
    return [[stripes[spec.rank_at(first + local)] for local in range(size)] for first in hosts]


def host_switch_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """Return the cost of all data over each rank's link once, in one direction or in both."""
    return Cost(1, links.inside.message_ps(0), spec.size_bytes * links.inside.ps_per_byte)


def with_inside_cost(spec: CollectiveSpec, links: Links, between: Cost, passes: int = 2) -> Cost:
    """Return the cost of an exchange between hosts with `passes` of the hosts' switches, which overlap it.

    The slower of the two takes its time; what else there is are the first piece's ways.
    """
    inside = host_switch_cost(spec, links)
    latency_ps = between.latency_ps + passes * inside.latency_ps
    # A link carries all data one way and 1/n the other way, at the same time in both passes.
    busy_ps = inside.transfer_ps * (1 + 1 / spec.host_size if passes > 1 else 1)
    return Cost(between.steps + passes, latency_ps, max(between.transfer_ps, busy_ps - between.latency_ps))


def _ring_cost(spec: CollectiveSpec, links: Links, passes: int) -> Cost:
    steps = passes * (spec.host_count - 1)
    chunk_bytes = nic_bytes(spec) / spec.rank_count
    step_ps = links.between.message_ps(piece_bytes(chunk_bytes, spec))
    return pipelined(steps, step_ps, steps * chunk_bytes * links.between.ps_per_byte)


def nvls_all_reduce_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """Inside a host, all data once; between hosts a rail's share 2(h-1)/h times, while hosts' switches work."""
    if spec.is_within_a_host:
        return host_switch_cost(spec, links)
    return with_inside_cost(spec, links, _ring_cost(spec, links, 2))


def nvls_pass_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """Half of that: of a reduce-scatter or an all-gather."""
    if spec.is_within_a_host:
        return host_switch_cost(spec, links)
    return with_inside_cost(spec, links, _ring_cost(spec, links, 1), passes=1)
