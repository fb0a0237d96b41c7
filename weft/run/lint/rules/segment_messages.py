"""A least size of messages in segments without segments."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class SegmentMessages(Rule):
    """A least size of messages in segments without segments."""

    name = "segment-messages"
    when = "`fidelity.messages` is given without `fidelity.segment`"
    reason = "packets travel alone, so the key changes nothing"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        fidelity = plan.options.fidelity
        if "messages" not in fidelity.model_fields_set or fidelity.has_segments:
            return
        yield self.finding(
            "fidelity.messages",
            "fidelity.segment is not given, so no message travels in segments",
            {"fidelity.segment": 16 * plan.options.mtu_bytes},
            "leave it out",
        )
