"""Base of kinds of routing with tables that never change: one shortest path to each prefix, without ECMP groups."""

from __future__ import annotations

from weft.controller.entities import Entity
from weft.controller.failures import NO_FAILURES, Failures
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.controller.routing.single_paths import single_paths
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.distances import distance_rings

_SEED = 1


class StaticPaths(ShortestPaths):
    """The routes of a plane, whatever fails."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._planned: dict[str, tuple[Entity, ...]] = {}

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name, as planned for the intact fabric: always the same objects."""
        if not self._planned:
            routes = super().plan(NO_FAILURES)
            self._planned = {
                switch.name: (*self._without_groups(switch, routes[switch.name]), *self._own_entities(switch))
                for switch in self.switches
            }
        return dict(self._planned)

    def _without_groups(self, switch: SwitchSpec, routes: tuple[Entity, ...]) -> tuple[Entity, ...]:
        return single_paths(switch.name, routes, _SEED)

    def _own_entities(self, switch: SwitchSpec) -> list[Entity]:
        """Return a switch's further entities."""
        return []


def most_switches(fabric: FabricSpec, plane: int) -> int:
    """Return the switches on the longest of a plane's shortest paths between hosts; 1 if all have the same switch."""
    switches = fabric.switches_of_plane(plane)
    place = {switch.name: number for number, switch in enumerate(switches)}
    rings = distance_rings([[place[port.peer.node] for port in switch.fabric_ports] for switch in switches])
    edges = sum(1 << number for number, switch in enumerate(switches) if switch.host_ports)
    numbers = [number for number, switch in enumerate(switches) if switch.host_ports]
    return 1 + max(hops for hops, ring in enumerate(rings) if any(ring[number] & edges for number in numbers))
