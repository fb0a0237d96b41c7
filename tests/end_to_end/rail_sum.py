"""A collective for fabrics of separate rails without links inside hosts: an all-reduce along each of them."""

import weft
from weft.traffic.schedule_nodes import DATA, ELEMENT_BYTES, SCRATCH, RankSchedule
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.schedules.plan import RankPlan

RANKS_OF_A_RAIL = 4
"""Side by side: they are the hosts of a leaf."""


def mates(rank: int) -> range:
    """Return the ranks of a rank's rail."""
    first = rank - rank % RANKS_OF_A_RAIL
    return range(first, first + RANKS_OF_A_RAIL)


def everybody(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Every rank sends all of its data to the others of its rail, and adds what they send."""
    count = spec.element_count
    schedule = RankSchedule(
        rank, {DATA: count * ELEMENT_BYTES, SCRATCH: RANKS_OF_A_RAIL * count * ELEMENT_BYTES}
    )
    plan = RankPlan(spec, rank, schedule, 0)
    others = [mate for mate in mates(rank) if mate != rank]
    slots = {mate: range(place * count, (place + 1) * count) for place, mate in enumerate(mates(rank))}
    before = [plan.write(mate, 0, range(count), slots[rank], to=SCRATCH) for mate in others]
    for mate in others:
        before = [plan.reduce(range(count), slots[mate], [*before, plan.wait(mate, 0)])]
    return schedule


class RailSum(weft.Collective):
    """The sum of the ranks of one's rail."""

    name = "rail_sum"
    algorithms = (weft.Algorithm("everybody", everybody),)
    reduces = True

    def terms(self, spec, inputs, rank):
        """Return the data of the rail's ranks, which NumPy adds."""
        return [inputs[mate] for mate in mates(rank)]

    def bus_bandwidth_factor(self, ranks):
        """Return that of sending everything to all others."""
        return RANKS_OF_A_RAIL - 1.0
