"""Flowlets of single packets under go-back-N."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class FlowletGap(Rule):
    """Flowlets of single packets under go-back-N."""

    name = "flowlet-gap"
    when = (
        "flowlets of switches (`routing.flowlet_gap`) or hosts (`transport.flowlet_gap`) end after less than the "
        "time of a frame, and `transport.retransmission` is go-back-n"
    )
    reason = (
        "each packet of a flow at full rate is a flowlet of its own and may take another path; go-back-N takes "
        "overtaken packets for lost ones"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        transport, balancing = plan.options.transport, plan.options.load_balancing
        if transport.retransmission != "go-back-n":
            return
        gaps_ps = {}
        if balancing.mode in ("flowlet", "adaptive") and balancing.flowlet_gap_ps:
            gaps_ps["routing.flowlet_gap"] = balancing.flowlet_gap_ps
        if transport.path == "flowlet" and transport.flowlet_gap is not None:
            gaps_ps["transport.flowlet_gap"] = transport.flowlet_gap
        for key, gap_ps in gaps_ps.items():
            if gap_ps < plan.frame_ps:
                yield self.finding(
                    key,
                    f"{format_time(gap_ps)} are less than a frame takes, {format_time(plan.frame_ps)}, so each packet "
                    "of a flow may take another path, and go-back-n sends all after an overtaken one again",
                    {key: shortest_time(2 * plan.idle_round_trip_ps)},
                    "set transport.retransmission: selective-repeat",
                )
