"""Acknowledgements that are too rare for the congestion control."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.traffic.class_reference import short_reference


class AckInterval(Rule):
    """Acknowledgements that are too rare for the congestion control."""

    name = "ack-interval"
    when = "`transport.ack_interval` is above 1, and a congestion control needs an acknowledgement of each packet"
    reason = "the congestion control sees one round trip of several, and reacts late"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        interval = plan.options.transport.ack_interval
        if interval is None or interval == 1:
            return
        names = {
            short_reference(each.section.congestion_control): None
            for each in plan.controls
            if each.needs.every_acknowledgement
        }
        if names:
            yield self.finding(
                "transport.ack_interval",
                f"{interval} packets are acknowledged together, and {' and '.join(names)} needs an acknowledgement of "
                "each packet, so it reacts late",
                {"transport.ack_interval": 1},
            )
