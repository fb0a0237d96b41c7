"""Several paths for packets of a flow under go-back-N."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class ReorderingGoBackN(Rule):
    """Several paths for packets of a flow under go-back-N."""

    name = "reordering-go-back-n"
    when = (
        "routing sends packets of a flow over several paths, by `kind` or `load_balancing`, and "
        "`transport.retransmission` is go-back-n"
    )
    reason = "go-back-N takes an overtaken packet for a lost one and sends all after it again"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        options, routing = plan.options, plan.options.routing
        if not options.reorders or options.transport.retransmission != "go-back-n":
            return
        key, value = ("kind", routing.kind) if routing.has_intermediates else ("load_balancing", routing.load_balancing)
        yield self.finding(
            f"routing.{key}",
            f"{value} sends packets of a flow over several paths, where they overtake each other, and go-back-n sends "
            "all after an overtaken one again",
            {"transport.retransmission": "selective-repeat"},
        )
