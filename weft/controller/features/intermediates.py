"""Which packets may go to an intermediate first, and when (p4/include/valiant.p4).

The ports of hosts say so, on fabrics whose kind of routing has intermediates; the way there is that kind's.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.controller.entities import Entity, entry
from weft.controller.features.kind import Feature, OfSwitch, Settings
from weft.controller.features.load_balancing import time_units
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.intermediates import Intermediates
from weft.topologies import FabricSpec, SwitchSpec

TABLE = "source_routing_ports"
STATE = ("port_depths", "port_depth_times")
"""Registers of what switches remember from packet to packet."""
DEFAULT_UGAL_THRESHOLD_BYTES = 0
DEFAULT_DEPTH_LIFETIME_PS = 10**9
_THRESHOLD_BITS = 32


@dataclass(frozen=True)
class UgalSettings:
    """What a choice between the minimal route and one through an intermediate goes by.

    Attributes:
        threshold_bytes: how much more the minimal route's queue must hold, in bytes times hops.
        depth_lifetime_ps: a depth that egress left longer ago counts as an empty queue's.

    """

    threshold_bytes: int = DEFAULT_UGAL_THRESHOLD_BYTES
    depth_lifetime_ps: int = DEFAULT_DEPTH_LIFETIME_PS


def _entities(fabric: FabricSpec, settings: Settings) -> OfSwitch:
    of_plane = ROUTING_KINDS.named(settings.routing).intermediates
    if of_plane is None:
        return lambda _switch: ()
    planes = [of_plane(fabric, plane) for plane in range(fabric.planes)]
    places = {
        switch.name: place
        for plane in range(fabric.planes)
        for place, switch in enumerate(fabric.switches_of_plane(plane))
    }
    arguments = _ugal_arguments(settings)
    return lambda switch: _of_ports(switch, planes[switch.plane], places[switch.name], arguments)


def _of_ports(
    switch: SwitchSpec, intermediates: Intermediates, place: int, ugal: dict[str, int]
) -> list[Entity]:
    if not intermediates.are_enough:
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
