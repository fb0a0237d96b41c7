"""Too few slots for in-network reductions."""

from __future__ import annotations

from collections.abc import Iterator

from weft.clocks.endpoint_settings import default_slot_count
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class Slots(Rule):
    """Too few slots for in-network reductions."""

    name = "slots"
    when = (
        "a given `slots` is less than half of the default, one bandwidth-delay product, and traffic reduces in "
        "the network"
    )
    reason = "hosts wait for results before they may send more, so links are idle"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        options = plan.options
        if options.slots is None or not any(item.reduces_in_network(plan.fabric) for item in plan.spec.traffic):
            return
        default = default_slot_count(
            plan.fabric, options.ip_version, options.switching.latency, options.aggregation.lane_count
        )
        if 2 * options.slots * options.trees >= default:
            return
        yield self.finding(
            "slots",
            f"{options.slots} slots hold less than one bandwidth-delay product, {default // 2} packets, so hosts wait "
            "for results while links are idle",
            {"slots": default},
            "leave it out",
        )
