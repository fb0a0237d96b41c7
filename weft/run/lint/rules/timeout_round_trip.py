"""A retransmission timeout that no acknowledgement meets."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class TimeoutRoundTrip(Rule):
    """A retransmission timeout that no acknowledgement meets."""

    name = "timeout-round-trip"
    when = "`transport.retransmission_timeout` is below the round trip of the idle path between the farthest hosts"
    reason = (
        "packets between these hosts are sent again before their acknowledgements can come; after seven times the "
        "connection fails"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        timeout_ps = plan.options.transport.retransmission_timeout
        if timeout_ps is None or timeout_ps >= plan.idle_round_trip_ps:
            return
        yield self.finding(
            "transport.retransmission_timeout",
            f"{format_time(timeout_ps)} are less than the round trip of the idle path between the farthest hosts, "
            f"{format_time(plan.idle_round_trip_ps)}, so packets are sent again before their acknowledgements can come",
            {"transport.retransmission_timeout": shortest_time(plan.patient_timeout_ps)},
            "leave it out: the default outlasts full queues",
        )
