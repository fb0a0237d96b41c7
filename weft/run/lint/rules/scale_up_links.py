"""Links of a scale-up domain without credits, or without link-level retry."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.traffic_classes import DATA_CLASS
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class ScaleUpLinks(Rule):
    """Links of a scale-up domain without credits, or without link-level retry."""

    name = "scale-up-links"
    when = (
        "a fabric of kind `scale_up` has neither `credits` nor `pfc`; or its links lose (`faults`) and have no "
        "`link_retry`"
    )
    reason = (
        "NVLink and UALink lose nothing: a port sends only for credits, and sends again what its link has spoilt. "
        "Without them queues drop, and accelerators repeat after a round trip or a timeout"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        options = plan.options
        if not plan.fabric.is_scale_up:
            return
        if not options.credits.classes and not options.pfc.classes:
            yield self.finding(
                "fabric.kind",
                "the links of a scale-up domain have credits, and these have none: full queues drop packets",
                {"credits.classes": [DATA_CLASS]},
            )
        loses = any(each.loss or each.bit_error_rate for each in options.faults.variants)
        if loses and not options.link_retry.links:
            yield self.finding(
                "faults",
                "the links of a scale-up domain send again what they spoil, and these do not: accelerators repeat it",
                {"link_retry.links": ["*<->*"]},
            )
