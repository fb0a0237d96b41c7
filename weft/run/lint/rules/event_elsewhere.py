"""Events on planes without traffic."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.run.traffic_kinds.incast import IncastTraffic
from weft.scenario.link_checks import links_of_event

_STORAGE = "storage"
"""Kind of the items that use a storage network; their class would load what other scenarios do not need."""


class EventElsewhere(Rule):
    """Events on planes without traffic."""

    name = "event-elsewhere"
    when = "all traffic is incasts, or none is storage, and an event is about links of planes that it does not use"
    reason = "the event changes nothing that the run measures"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        used = _planes_used(plan)
        for index, event in enumerate(plan.options.events):
            if event.is_operation and event.plane is None:
                continue
            key = f"events[{index}]"
            links = links_of_event(plan.fabric, plan.options, event, key)
            planes = {plan.fabric.switch(link.b.node).plane for link in links}
            if not planes or not planes.isdisjoint(used) or not used:
                continue
            names = " and ".join(map(str, sorted(used)))
            idle = " and ".join(map(str, sorted(planes)))
            yield self.finding(
                f"{key}.{event.names}",
                f"all traffic is on plane {names}, and the event is about plane {idle}, so it changes nothing",
                {f"{key}.plane": min(used)} if event.plane is not None else {},
                "" if event.plane is not None else f"name a link of plane {names}",
            )


def _planes_used(plan: Plan) -> set[int]:
    """Return the planes of all traffic."""
    fabric, used = plan.fabric, set[int]()
    for _, item in plan.items:
        if isinstance(item, IncastTraffic):
            used.add(fabric.hosts[0].nics[item.plane].plane)
        elif item.kind == _STORAGE:
            used.update(fabric.storage_planes if not fabric.storage_failover else range(fabric.planes))
        else:
            used.update(fabric.training_planes)
    return used
