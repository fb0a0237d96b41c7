"""A retransmission timeout that a full queue exceeds."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class TimeoutQueue(Rule):
    """A retransmission timeout that a full queue exceeds."""

    name = "timeout-queue"
    when = (
        "`transport.retransmission_timeout` is below the round trip with one full queue, and only losses slow the "
        "congestion control"
    )
    reason = (
        "packets that wait in a full queue are sent again, and the queue stays full of packets that have been "
        "delivered before"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        timeout_ps = plan.options.transport.retransmission_timeout
        queued_ps = plan.idle_round_trip_ps + plan.drain_ps
        if timeout_ps is None or not plan.idle_round_trip_ps <= timeout_ps < queued_ps or not plan.is_followed_by_none:
            return
        yield self.finding(
            "transport.retransmission_timeout",
            f"{format_time(timeout_ps)} are less than a round trip with a full queue, {format_time(queued_ps)}, so "
            "packets that wait in it are sent again",
            {"transport.retransmission_timeout": shortest_time(plan.patient_timeout_ps)},
            "leave it out: the default outlasts full queues",
        )
