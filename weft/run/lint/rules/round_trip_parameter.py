"""A congestion control for a shorter path than there is."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class RoundTripParameter(Rule):
    """A congestion control for a shorter path than there is."""

    name = "round-trip-parameter"
    when = (
        "a given `round_trip` of a congestion control is below the round trip of the idle path between the "
        "nearest hosts"
    )
    reason = "windows are too small for any path, so links are idle although hosts have data to send"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        for each in plan.controls:
            given_ps = each.given("round_trip_ps")
            if given_ps is None or given_ps >= plan.nearest_round_trip_ps:
                continue
            key = each.parameter_key("round_trip_ps")
            yield self.finding(
                key,
                f"{format_time(given_ps)} are less than the round trip of the idle path between the nearest hosts, "
                f"{format_time(plan.nearest_round_trip_ps)}, so windows leave links idle",
                {key: shortest_time(plan.idle_round_trip_ps)},
                "leave it out: the default follows the path",
            )
            return
