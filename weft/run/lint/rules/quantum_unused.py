"""Weights of classes without traffic."""

from __future__ import annotations

from collections.abc import Iterator

from weft.controller.features.virtual_lanes import lane_classes
from weft.controller.routing import ROUTING_KINDS
from weft.quantities.traffic_classes import DATA_CLASSES
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.scenario.tenant_shares import shares_of


class QuantumUnused(Rule):
    """Weights of classes without traffic."""

    name = "quantum-unused"
    when = "`scheduling.quantum` names a class of data that `scheduling.classes` and the lanes of routes do not have"
    reason = "no packet travels in that class, so its weight changes nothing"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        if shares_of(plan.options.tenants):
            return  # the weights follow from tenants, also those of classes that anybody's packets may have
        scheduling = plan.options.scheduling
        lanes = ROUTING_KINDS.named(plan.options.routing.kind).lanes_of_planes(plan.fabric)
        used = {each for sent_in in scheduling.data_classes for plane in lanes for each in lane_classes(sent_in, plane)}
        unused = sorted(set(scheduling.quantum) & set(DATA_CLASSES) - used)
        if not unused:
            return
        kept = {number: size for number, size in scheduling.quantum.items() if number not in unused}
        names = ", ".join(map(str, unused))
        classes = sorted({*scheduling.classes, *unused})
        yield self.finding(
            "scheduling.quantum",
            f"no packet travels in class {names}, so its weight changes nothing",
            {"scheduling.quantum": kept},
            f"set scheduling.classes: {classes}, which has switches keep the class apart",
        )
