"""A target for the delay below the idle round trip."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule

_TARGETS = {
    "base_target_ps": ("hop_target_ps", "flow_scaling_range_ps"),
    "low_threshold_ps": None,
    "high_threshold_ps": None,
}
"""Parameters that are compared with whole round trips, and those that are added: for each hop, and at most for flows
that share a link."""


class DelayTarget(Rule):
    """A target for the delay below the idle round trip."""

    name = "delay-target"
    when = (
        "a given `base_target` (with all that is added for hops and flows), `low_threshold` or "
        "`high_threshold` of a congestion control is below the round trip of the idle path between the nearest "
        "hosts"
    )
    reason = "every round trip exceeds the target, so senders slow down to their least rate on an idle fabric"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        for each in plan.controls:
            for parameter, more in _TARGETS.items():
                target_ps = each.given(parameter)
                if target_ps is None or each.in_force is None:
                    continue
                if more is not None:
                    per_hop, for_flows = more
                    target_ps += plan.nearest_switches * each.in_force[per_hop] + each.in_force[for_flows]
                if target_ps >= plan.nearest_round_trip_ps:
                    continue
                key = each.parameter_key(parameter)
                yield self.finding(
                    key,
                    f"a target of {format_time(target_ps)} is below the round trip of the idle path between the "
                    f"nearest hosts, {format_time(plan.nearest_round_trip_ps)}, so "
                    f"{each.section.congestion_control} slows down without congestion",
                    {key: shortest_time(2 * plan.idle_round_trip_ps)},
                    "leave it out: the default follows the path",
                )
                return
