"""NICs that pause without end."""

from __future__ import annotations

from weft.quantities.readable import format_time
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent
from weft.results.nic_storms import NIC_STORMS


class NicStorms(LimitKind):
    """The NIC that asked for pauses for longest."""

    name = "nic_storms"
    figures = "`began_ps` and `ended_ps` of `nic_storms`, `phases`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        phases = evidence.results.phases
        first_ps, last_ps = min(each.start_ps for each in phases), max(each.end_ps for each in phases)
        lasted = [
            (min(last_ps, storm.ended_ps or last_ps) - max(first_ps, storm.began_ps), storm)
            for storm in evidence.results.of(NIC_STORMS)
            if storm.began_ps is not None
        ]
        held_ps, storm = max(lasted, key=lambda each: each[0], default=(0, None))
        if storm is None or held_ps <= 0 or storm.began_ps is None:
            return None
        share = min(1.0, held_ps / evidence.traffic_ps)
        classes = " and ".join(map(str, storm.classes))
        return Limit(
            self.name,
            f"the NIC of {storm.host}, which asked for pauses of class {classes} without end from "
            f"{format_time(storm.began_ps)} on, for {percent(share)} of the time",
            share,
            storm.host,
        )
