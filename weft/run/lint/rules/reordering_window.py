"""No patience for packets that are overtaken."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class ReorderingWindow(Rule):
    """No patience for packets that are overtaken."""

    name = "reordering-window"
    when = (
        "hosts or switches send packets of a flow over several paths, and `transport.reordering_window` is below "
        "the time of a frame"
    )
    reason = "a packet that is overtaken by one frame counts as lost and is sent again"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        transport = plan.options.transport
        window_ps = transport.reordering_window
        if window_ps is None or window_ps >= plan.frame_ps or transport.retransmission != "selective-repeat":
            return
        if not (transport.sprays or plan.options.reorders):
            return
        yield self.finding(
            "transport.reordering_window",
            f"{format_time(window_ps)} are less than a frame takes, {format_time(plan.frame_ps)}, so every packet that "
            "another one overtakes on another path is sent again",
            {"transport.reordering_window": shortest_time(plan.idle_round_trip_ps)},
            "leave it out",
        )
