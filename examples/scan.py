"""A collective of one's own: MPI's inclusive scan (MPI 4.1, section 6.11). Rank r ends with the sum of ranks 0 to r."""

import weft
from weft.traffic.schedule_nodes import DATA, SCRATCH, RankSchedule
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.schedules.plan import RankPlan, cut


def chain(spec: CollectiveSpec, rank: int) -> RankSchedule:
    """Every rank adds what the rank before sends, and sends the sum to the next, piece by piece on every plane."""
    size_bytes = spec.size_bytes
    schedule = RankSchedule(rank, {DATA: size_bytes, SCRATCH: size_bytes})
    for plane, stripe in enumerate(spec.stripes()):
        plan = RankPlan(spec, rank, schedule, plane)
        for number, piece in enumerate(cut(stripe, spec.piece_bytes, spec.element_bytes)):
            summed = None
            if rank > 0:
                summed = plan.reduce(piece, piece, [plan.wait(rank - 1, number)])
            if rank + 1 < spec.rank_count:
                plan.write(rank + 1, number, piece, to=SCRATCH, after=[summed])
    return schedule


class Scan(weft.Collective):
    """Everybody's sum of itself and those before."""

    name = "scan"
    algorithms = (weft.Algorithm("chain", chain),)
    reduces = True

    def terms(self, spec, inputs, rank):
        """Return the data of the ranks up to this one, which NumPy adds."""
        return inputs[: rank + 1]

    def bus_bandwidth_factor(self, ranks):
        """Return 1: all of the data must leave every rank but the last."""
        return 1.0
