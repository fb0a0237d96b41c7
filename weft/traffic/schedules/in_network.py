"""Collectives by the switches: what any number of ranks contribute crosses each link of a tree once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from weft.traffic.aggregation_format import (
    LANE_BYTES,
    LANE_COUNT,
    Operation,
    elements_per_lane,
    has_exponents,
)
from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import AGGREGATE, Chunk, ChunkTable, InNetwork, LaneSchedule
from weft.traffic.schedule_nodes import DATA
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.spec import CollectiveSpec


def in_network_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce in the network: each plane's aggregation trees reduce the plane's stripe."""
    return _of_stripes(InNetwork.ALL_REDUCE, spec, rank)


def in_network_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce: results go to the root, the other ranks get their headers, which confirm rounds."""
    return _of_stripes(InNetwork.REDUCE, spec, rank)


def in_network_broadcast(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Broadcast: the root's data go up its branch of the tree and down all others; other ranks contribute headers."""
    return _of_stripes(InNetwork.BROADCAST, spec, rank)


def in_network_reduce_scatter(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Reduce-scatter: each chunk's result goes to its rank."""
    return _of_chunks(InNetwork.REDUCE_SCATTER, spec, rank)


def in_network_all_gather(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-gather: a broadcast of each rank's chunk, one behind the other."""
    return _of_chunks(InNetwork.ALL_GATHER, spec, rank)


def in_network_barrier(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Barrier: a header of each rank in the first plane in use, answered when all have come."""
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    plane = next(number for number, rate in enumerate(spec.plane_rates_bps) if rate)
    _add(InNetwork.BARRIER, spec, schedule, plane, LanePlan(spec, rank, schedule, plane).whole(range(0)))
    return schedule


@lru_cache(maxsize=8)
def _chunk_tables(spec: CollectiveSpec, plane: int) -> dict[int, ChunkTable]:
    """Return what each tree of a plane has of every rank's chunk; trees that have nothing are left out."""
    stripes = spec.chunk_stripes(plane)
    of_trees = [dict(spec.of_trees(stripe, plane)) for stripe in stripes]
    shares = {
        tree: [each.get(tree, stripe[:0]) for each, stripe in zip(of_trees, stripes, strict=True)]
        for tree in sorted({tree for each in of_trees for tree in each})
    }
    return {tree: ChunkTable.of(chunks) for tree, chunks in shares.items()}


def _of_stripes(kind: InNetwork, spec: CollectiveSpec, rank: int) -> LaneSchedule:
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    for plane, stripe in enumerate(spec.stripes()):
        for tree, elements in spec.of_trees(stripe, plane):
            _add(kind, spec, schedule, tree, LanePlan(spec, rank, schedule, plane).whole(elements))
    return schedule


def _of_chunks(kind: InNetwork, spec: CollectiveSpec, rank: int) -> LaneSchedule:
    schedule = new_schedule(spec, rank, {DATA: spec.size_bytes})
    for plane in range(len(spec.plane_rates_bps)):
        for tree, chunks in _chunk_tables(spec, plane).items():
            _add(kind, spec, schedule, tree, Chunk(schedule.add_table(chunks)))
    return schedule


def _add(kind: InNetwork, spec: CollectiveSpec, schedule: LaneSchedule, tree: int, elements: Chunk) -> None:
    schedule.add_lanes(1)
    schedule.add_loop(1, schedule.add_grid(1, AGGREGATE))
    schedule.aggregate(elements, tree, slot=0, kind=kind, root=spec.root)


def in_network_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """To the root and back once, for sums of floats twice: their blocks' exponents go ahead."""
    return aggregation_cost(spec, links, nic_bytes(spec), spec.rank_count)


def in_network_move_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """To the root and back once, for data of any type."""
    return in_network_cost(replace(spec, operation=Operation.MAX), links)


def in_network_barrier_cost(_spec: CollectiveSpec, links: Links) -> Cost:
    """To the root and back once."""
    return Cost(1, links.aggregation.latency_ps, 0.0)


def aggregation_cost(spec: CollectiveSpec, links: Links, size_bytes: float, workers: int) -> Cost:
    """Return the cost of one aggregation tree's part, to which so many workers contribute."""
    exponents_first = has_exponents(spec.dtype, spec.operation)
    each = elements_per_lane(spec.dtype, spec.operation, workers)
    lanes = -(-size_bytes // (spec.element_bytes * each))
    blocks = -(-lanes // LANE_COUNT)
    rounds = 2 if exponents_first else 1
    packets = blocks + (-(-blocks // LANE_COUNT) if exponents_first else 0)
    packet_ps = LANE_COUNT * LANE_BYTES * links.aggregation.ps_per_byte
    return Cost(rounds, rounds * links.aggregation.latency_ps, max(0.0, packets - rounds) * packet_ps)
