"""Trimmed packets that no receiver answers."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class TrimUnanswered(Rule):
    """Trimmed packets that no receiver answers."""

    name = "trim-unanswered"
    when = "`trimming.classes` are given, and all traffic is RDMA over RoCEv2's RC"
    reason = (
        "adapters discard trimmed packets, as they do packets that are cut: senders learn of the loss by the next "
        "packet or a timeout, and the trimmed packets take the place of others"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        trimming = plan.options.trimming
        if not trimming.classes or plan.options.transport.kind.answers_trimmed:
            return
        if not plan.items or plan.has_ip_traffic:
            return
        yield self.finding(
            "trimming.classes",
            f"{trimming.classes} trim, and receivers of transport.protocol: {plan.options.transport.protocol} discard "
            "what is trimmed, so nobody learns of a loss by it",
            {"transport.protocol": "mrc", "int": False},
            "leave trimming out",
        )
