"""All-reduce by the switches: every rank's data crosses its link once, for any number of ranks."""

from __future__ import annotations

from weft.traffic.aggregation_format import Operation
from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import AGGREGATE, LaneSchedule
from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, DataType
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.spec import CollectiveSpec
from weft.traffic.striping import BLOCK_ELEMENTS


def in_network_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce in the network: each plane's aggregation trees reduce the plane's stripe."""
    schedule = new_schedule(spec, rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for plane, stripe in enumerate(spec.stripes()):
        for tree, elements in spec.of_trees(stripe, plane):
            schedule.add_lanes(1)
            schedule.add_loop(1, schedule.add_grid(1, AGGREGATE))
            schedule.aggregate(LanePlan(spec, rank, schedule, plane).whole(elements), tree, slot=0)
    return schedule


def in_network_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """To the root and back once, for sums of floats twice: their blocks' exponents go ahead."""
    return aggregation_cost(spec, links, nic_bytes(spec))


def aggregation_cost(spec: CollectiveSpec, links: Links, size_bytes: float) -> Cost:
    """Return the cost of one aggregation tree's part."""
    block_bytes = BLOCK_ELEMENTS * ELEMENT_BYTES
    blocks = -(-size_bytes // block_bytes)
    has_exponents = spec.dtype is not DataType.INT32 and spec.operation is Operation.SUM
    rounds = 2 if has_exponents else 1
    packets = blocks + (-(-blocks // BLOCK_ELEMENTS) if has_exponents else 0)
    packet_ps = block_bytes * links.aggregation.ps_per_byte
    return Cost(rounds, rounds * links.aggregation.latency_ps, max(0.0, packets - rounds) * packet_ps)
