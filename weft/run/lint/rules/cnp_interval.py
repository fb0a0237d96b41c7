"""CNPs that are rarer than the increases of the rate between them."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.traffic.transport_settings import preset_of


class CnpInterval(Rule):
    """CNPs that are rarer than the increases of the rate between them."""

    name = "cnp-interval"
    when = "`transport.cnp_interval` is above the congestion control's `increase_timer`"
    reason = "the rate rises between two CNPs while the path is congested all the time"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        interval_ps = plan.options.transport.cnp_interval
        if interval_ps is None:
            return
        for each in plan.controls:
            timer_ps = (each.in_force or {}).get("increase_timer_ps")
            if timer_ps is None or interval_ps <= timer_ps:
                continue
            preset = preset_of(each.section.congestion_control, each.section.preset)
            own_ps = min(int(timer_ps), preset.cnp_interval_ps if preset is not None else 0)
            yield self.finding(
                "transport.cnp_interval",
                f"CNPs come at most each {format_time(interval_ps)}, and {each.section.congestion_control} raises its "
                f"rate each {format_time(timer_ps)} without one, so rates rise while the path is congested",
                {"transport.cnp_interval": shortest_time(own_ps)},
                "leave it out: the preset has one",
            )
            return
