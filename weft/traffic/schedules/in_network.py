"""All-reduce by the switches: every rank's data crosses its line once, whatever the number of ranks."""

from __future__ import annotations

from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, Aggregate, RankSchedule, Span
from weft.traffic.schedules.spec import CollectiveSpec


def in_network_all_reduce(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """All-reduce in the network: each plane's aggregation tree reduces the plane's stripe."""
    schedule = RankSchedule(rank, {DATA: spec.element_count * ELEMENT_BYTES})
    for plane, elements in enumerate(spec.stripes()):
        if elements:
            span = Span(DATA, elements.start * ELEMENT_BYTES, len(elements) * ELEMENT_BYTES)
            schedule.add(Aggregate(plane, span, spec.dtype, spec.operation))
    return schedule
