"""Flow control of classes without data."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class LosslessClass(Rule):
    """Flow control of classes without data."""

    name = "lossless-class"
    when = "`pfc.classes` or `credits.classes` names no class of data (class 3 and `scheduling.classes`)"
    reason = "no data is paused: it is lost when a queue is full, as without flow control"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        data_classes = plan.options.scheduling.data_classes
        for name, section in (("pfc", plan.options.pfc), ("credits", plan.options.credits)):
            if not section.classes or not set(section.classes).isdisjoint(data_classes):
                continue
            data = ", ".join(map(str, data_classes))
            yield self.finding(
                f"{name}.classes",
                f"{section.classes} has none of the classes of data, {data}, so data is lost when queues are full",
                {f"{name}.classes": list(data_classes)},
            )
