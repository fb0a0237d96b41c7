"""A rate above the host's port."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_rate
from weft.quantities.units import shortest_rate
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule

_RATES = ("line_rate_bps", "max_rate_bps", "min_rate_bps", "pacing_rate_bps")


class RateAbovePort(Rule):
    """A rate above the host's port."""

    name = "rate-above-port"
    when = (
        "a given `line_rate`, `max_rate`, `min_rate` or `pacing_rate` of a congestion control is above the rate "
        "of the fastest port of a host"
    )
    reason = "the congestion control lowers a rate that the port does not reach, so its first reactions change nothing"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        if not plan.host_rates_bps:
            return
        fastest_bps = plan.host_rates_bps[-1]
        for each in plan.controls:
            for parameter in _RATES:
                given_bps = each.given(parameter)
                if given_bps is not None and given_bps > fastest_bps:
                    key = each.parameter_key(parameter)
                    yield self.finding(
                        key,
                        f"{format_rate(given_bps)} are more than the fastest port of a host sends, "
                        f"{format_rate(fastest_bps)}, so the first reductions of the rate change nothing",
                        {key: shortest_rate(fastest_bps)},
                        "leave it out",
                    )
                    return
