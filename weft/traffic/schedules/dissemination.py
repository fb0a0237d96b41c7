"""A barrier by hosts: in each round every rank signals one twice as far away as in the round before.

After ⌈log2 n⌉ rounds each has heard, directly or not, of all others (Hensgen, Finkel and Manber, "Two algorithms for
barrier synchronization", International Journal of Parallel Programming 17(1), 1988).
"""

from __future__ import annotations

from weft.traffic.costs import Cost, Links
from weft.traffic.schedule_nodes import (
    DATA,
    SINK,
    ZEROS,
    RankSchedule,
    Span,
    Write,
    run_immediate,
)
from weft.traffic.schedules.plan import RankPlan
from weft.traffic.schedules.spec import CollectiveSpec

_SIGNAL_BYTES = 4


def dissemination_barrier(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Barrier over the first plane in use. Nobody reads a signal's bytes."""
    schedule = RankSchedule(rank, {DATA: spec.size_bytes, ZEROS: _SIGNAL_BYTES, SINK: _SIGNAL_BYTES})
    plane = next(number for number, rate in enumerate(spec.plane_rates_bps) if rate)
    plan = RankPlan(spec, rank, schedule, plane)
    heard: int | None = None
    for number in range((spec.rank_count - 1).bit_length()):
        distance = 1 << number
        signal = Write(
            plan.channel_to((rank + distance) % spec.rank_count),
            Span(ZEROS, 0, _SIGNAL_BYTES),
            Span(SINK, 0, _SIGNAL_BYTES),
            run_immediate(spec.run_tag, number),
        )
        schedule.add(signal, [heard])
        heard = plan.wait((rank - distance) % spec.rank_count, number, after=[heard])
    return schedule


def dissemination_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """A signal a round."""
    rounds = (spec.rank_count - 1).bit_length()
    return Cost(rounds, rounds * links.between.message_ps(_SIGNAL_BYTES), 0.0)
