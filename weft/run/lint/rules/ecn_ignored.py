"""Marks that nothing follows."""

from __future__ import annotations

from collections.abc import Iterator

from weft.engine import path_choice_kind
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.scenario import FabricOptions
from weft.traffic.class_reference import is_class_reference


class EcnIgnored(Rule):
    """Marks that nothing follows."""

    name = "ecn-ignored"
    when = (
        "`ecn` has thresholds, all traffic is RDMA, and no congestion control or choice of path is in use that "
        "needs marks or is a class of yours"
    )
    reason = "packets are marked and nothing slows down"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        if plan.options.ecn.kmin is None or not plan.items or not plan.is_followed_by_none:
            return
        if plan.has_ip_traffic or _path_may_follow(plan.options):
            return
        names = " and ".join(plan.options.transport.congestion_controls)
        yield self.finding(
            "ecn",
            f"switches mark packets, and {names} does not follow marks, so the thresholds change nothing",
            {"transport.congestion_control": "dcqcn"},
            "leave ecn out",
        )


def _path_may_follow(options: FabricOptions) -> bool:
    """Return whether the choice of path may follow marks: one of Weft's that does, or any class of yours."""
    path = options.transport.path
    return path != "flow" and (is_class_reference(path) or path_choice_kind(path).marks)
