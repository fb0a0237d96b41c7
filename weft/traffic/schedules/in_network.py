"""All-reduce by the switches: every rank's data crosses its link once, for any number of ranks."""

from __future__ import annotations

from weft.traffic.lane_schedule import AGGREGATE, LaneSchedule
from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES
from weft.traffic.schedules.lane_plan import LanePlan, new_schedule
from weft.traffic.schedules.spec import CollectiveSpec


def in_network_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce in the network: each plane's aggregation tree reduces the plane's stripe."""
    schedule = new_schedule(spec, rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for plane, elements in enumerate(spec.stripes()):
        if elements:
            schedule.add_lanes(1)
            schedule.add_loop(1, schedule.add_grid(1, AGGREGATE))
            schedule.aggregate(LanePlan(spec, rank, schedule, plane).whole(elements), plane, slot=0)
    return schedule
