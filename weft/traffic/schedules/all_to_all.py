"""All-to-all: chunk j of rank i becomes chunk i of rank j. Moves (n-1)/n of the data through every link."""

from __future__ import annotations

from functools import lru_cache

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import COPY, WAIT, WRITE, Chunk, ChunkTable, Formula, LaneSchedule
from weft.traffic.schedule_nodes import DATA, SCRATCH
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.spec import CollectiveSpec


def direct_all_to_all(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Write to all other ranks at once; the NIC shares the link among them."""
    return _all_to_all(spec, rank, in_turn=False)


def pairwise_all_to_all(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Write to the next rank, then to the one after it, and so on: a step begins when the previous one is done.

    At every step each rank sends to one and receives from one (Thakur, Rabenseifner and Gropp, 2005, section 3.4).
    """
    return _all_to_all(spec, rank, in_turn=True)


def _all_to_all(spec: CollectiveSpec, rank: int, in_turn: bool) -> LaneSchedule:
    size_bytes = spec.size_bytes
    schedule = new_schedule(spec, rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for plane in range(len(spec.plane_rates_bps)):
        chunks = _chunks_by_position(spec, plane)
        if chunks.largest and spec.rank_count > 1:
            exchange = _Exchange(LanePlan(spec, rank, schedule, plane), chunks)
            if in_turn:
                exchange.in_turn()
            else:
                exchange.at_once()
    return schedule


@lru_cache(maxsize=64)
def _chunks_by_position(spec: CollectiveSpec, plane: int) -> ChunkTable:
    """Return the plane's share of the chunk of the rank at each position; all ranks share the table."""
    chunks = spec.chunk_stripes(plane)
    return ChunkTable.of([chunks[spec.rank_at(position)] for position in range(spec.rank_count)])


class _Exchange:
    """One rank's exchange over one plane: at step s it sends to s positions further on, and receives from s back.

    A received chunk replaces the one sent the other way: it is copied there from the scratch buffer once it has arrived
    and the one sent is acknowledged.
    """

    def __init__(self, plan: LanePlan, chunks: ChunkTable) -> None:
        spec, schedule = plan.spec, plan.schedule
        self.plan, self.schedule, self.steps = plan, schedule, spec.rank_count - 1
        self.own, self.table = spec.position(plan.rank), schedule.add_table(chunks)
        distances = [distance for step in range(1, spec.rank_count) for distance in (step, -step)]
        self.first_channel = plan.channel_row(
            spec.rank_at((self.own + distance) % spec.rank_count) for distance in distances
        )
        self.sent, self.arrived = schedule.add_marks(), schedule.add_marks()
        self.transfers = schedule.add_grid(self.steps, WRITE, WAIT)
        self.copies = schedule.add_grid(self.steps, COPY)

    def at_once(self) -> None:
        """Add a lane for each step's write, and one for what comes."""
        schedule = self.schedule
        target, source = Chunk(self.table, self.own + 1, 0, 1), Chunk(self.table, self.own - 1, 0, -1)
        schedule.add_lanes(self.steps)
        schedule.add_loop(1, self.transfers)
        self._send(target, Formula(self.first_channel, 0, 2))
        schedule.await_acknowledgement()
        schedule.mark_elements(target, self.sent)
        schedule.add_lanes(self.steps)
        schedule.add_loop(1, self.transfers)
        self.plan.receive(source, Formula(self.first_channel + 1, 0, 2), slot=1)
        schedule.add_loop(1, self.copies)
        schedule.await_elements(source, self.sent)
        schedule.copy(source, slot=0)

    def in_turn(self) -> None:
        """Add a lane that goes through the steps, and one for each copy."""
        schedule = self.schedule
        target, source = Chunk(self.table, self.own + 1, 1), Chunk(self.table, self.own - 1, -1)
        schedule.add_lanes(1)
        schedule.add_loop(self.steps, self.transfers, Formula(0, 1, 0))
        self._send(target, Formula(self.first_channel, 2, 0))
        self.plan.receive(source, Formula(self.first_channel + 1, 2, 0), slot=1, in_turn=False)
        schedule.mark_elements(source, self.arrived)
        schedule.await_acknowledgement()
        schedule.mark_elements(target, self.sent)
        schedule.add_lanes(self.steps)
        schedule.add_loop(1, self.copies)
        copied = Chunk(self.table, self.own - 1, 0, -1)
        schedule.await_elements(copied, self.arrived)
        schedule.await_elements(copied, self.sent)
        schedule.copy(copied, slot=0)

    def _send(self, target: Chunk, channel: Formula) -> None:
        landing = Chunk(self.table, self.own)
        self.plan.send(target, channel, landing=landing, to_scratch=True, slot=0)


def direct_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """One step, of all chunks but the rank's own; those for its host's ranks take scale-up links."""
    chunk_bytes = nic_bytes(spec) / spec.rank_count
    outside = (spec.rank_count - spec.ranks_per_host) * chunk_bytes * links.between.ps_per_byte
    inside = (spec.ranks_per_host - 1) * chunk_bytes * links.inside.ps_per_byte
    return Cost(1, links.between.message_ps(0), max(outside, inside))


def pairwise_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """n-1 steps of a chunk."""
    chunk_bytes, steps = nic_bytes(spec) / spec.rank_count, spec.rank_count - 1
    busy_ps = chunk_bytes * links.between.ps_per_byte
    return Cost(steps, steps * (links.between.message_ps(chunk_bytes) - busy_ps), steps * busy_ps)
