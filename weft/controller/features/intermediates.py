"""Selects the packets that may go through an intermediate (p4/include/valiant.p4).

Host ports enable it, on fabrics with a kind of routing that has intermediates; that kind provides the routes to them.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.entities import Entity, entry
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.features.load_balancing import time_units
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.intermediates import Intermediates
from weft.quantities.units import PS_PER_MS
from weft.topologies import FabricSpec, SwitchSpec

TABLE = "source_routing_ports"
STATE = ("port_depths", "port_depth_times")
"""Registers with state that switches keep between packets."""
DEFAULT_UGAL_THRESHOLD_BYTES = 0
DEFAULT_DEPTH_LIFETIME_PS = PS_PER_MS
_THRESHOLD_BITS = 32


@dataclass(frozen=True)
class UgalSettings:
    """Criteria for choosing between the minimal route and one through an intermediate.

    Attributes:
        threshold_bytes: how much more the minimal route's queue must hold, in bytes times hops.
        depth_lifetime_ps: age above which a queue depth recorded by egress counts as 0.

    """

    threshold_bytes: int = DEFAULT_UGAL_THRESHOLD_BYTES
    depth_lifetime_ps: int = DEFAULT_DEPTH_LIFETIME_PS


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    kind = ROUTING_KINDS.named(settings.routing)
    if kind.intermediates is None:
        return lambda _switch: ()
    planes = [kind.intermediates_of(fabric, plane) for plane in range(fabric.planes)]
    places = {
        switch.name: place
        for plane in range(fabric.planes)
        for place, switch in enumerate(fabric.switches_of_plane(plane))
    }
    arguments = _ugal_arguments(settings)
    return lambda switch: _of_ports(switch, planes[switch.plane], places[switch.name], arguments)


def _of_ports(
    switch: SwitchSpec, intermediates: Intermediates | None, place: int, ugal: dict[str, int]
) -> list[Entity]:
    if intermediates is None or not intermediates.are_enough:
        return []
    choice = {"own_intermediate": intermediates.of_switches[place], "last": intermediates.count - 3}
    action, more = ("route_ugal", ugal) if intermediates.compares_queues else ("route_valiant", {})
    return [entry(TABLE, {"port": port.number}, action, **choice, **more) for port in switch.host_ports]


def _ugal_arguments(settings: Settings) -> dict[str, int]:
    chosen, target = settings.of(UgalSettings), settings.target
    return {
        "threshold": min(target.depth_units(chosen.threshold_bytes), (1 << _THRESHOLD_BITS) - 1),
        "lifetime": time_units(chosen.depth_lifetime_ps, target),
    }


KIND = Feature(
    name="intermediates",
    summary="Which packets may go to an intermediate switch or group first.",
    tables=(TABLE,),
    entities=_entities,
)
