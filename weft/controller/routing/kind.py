"""The definition of a kind of routing; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from weft.controller.demand import Demand, DemandLoads
from weft.controller.entities import Entity
from weft.controller.failures import Failures
from weft.controller.route_scope import RouteScope
from weft.controller.routing.channels import PortDestinations
from weft.controller.routing.ev_paths import EvRoutesKind
from weft.controller.routing.intermediates import Intermediates
from weft.controller.routing.lanes import ONE_LANE, Layers, VirtualLanes
from weft.topologies import FabricSpec


class PlaneRouting(Protocol):
    """The routes of one plane, updated for each set of failures."""

    def limit(self, scope: RouteScope) -> None:
        """Omit routes to addresses outside the scope, from the first plan on; a kind may keep them."""

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name.

        They depend only on the fabric and the failures, not on earlier plans. A switch with unchanged routes keeps the
        same tuple object, so that nothing is compared or written for it.
        """

    def expect(self, matrix: tuple[Demand, ...]) -> None:
        """Plan for this traffic matrix from now on; a kind that does not follow demand ignores it."""
        return

    def loads(self) -> DemandLoads | None:
        """Return the loads that the latest plan's paths were chosen for; None if the kind ignores demand."""
        return None

    def destinations(self) -> PortDestinations:
        """Return the destinations that the latest plan sends over each port between switches, by switch and port.

        Destinations are bits: switches by their place in the plane, followed by intermediates, if any, by number.
        """

    def layers(self) -> Layers:
        """Return the lanes in which packets begin in the latest plan: lane 0 unless `VirtualLanes.has_layers`."""


@dataclass(frozen=True)
class RoutingKind:
    """A kind of routing.

    Attributes:
        name: name in settings and topologies.
        summary: one-line description.
        tables: tables of the P4 program that it fills.
        plane: returns the routes of a plane of a fabric.
        objection: returns why a fabric cannot be routed this way; empty if it can.
        is_deadlock_free: whether lossless classes are known not to deadlock on a fabric's routes as long as nothing
            fails. Otherwise, the routes are searched for a cycle of buffers.
        lanes: returns the virtual lanes that keep a plane's routes free of such cycles.
        intermediates: returns the switches or groups of a plane that packets may visit first; None if there are none.
        macro: module of Weft's program that has its tables; empty if every program has them.
        follows_demand: whether `PlaneRouting.expect` changes the routes.
        ev_routes: how EVs of the hosts' transport name paths; None: they name none, and switches hash them.

    """

    name: str
    summary: str
    tables: tuple[str, ...]
    plane: Callable[[FabricSpec, int], PlaneRouting]
    objection: Callable[[FabricSpec], str]
    is_deadlock_free: Callable[[FabricSpec], bool]
    lanes: Callable[[FabricSpec, int], VirtualLanes] = lambda _fabric, _plane: ONE_LANE
    intermediates: Callable[[FabricSpec, int], Intermediates] | None = None
    macro: str = ""
    follows_demand: bool = False
    ev_routes: EvRoutesKind | None = None

    def in_plane(self, fabric: FabricSpec, plane: int) -> RoutingKind:
        """Return the kind of routing of a plane: this one, and shortest paths for a storage network."""
        if plane != fabric.storage_plane:
            return self
        from weft.controller.routing.shortest_paths import KIND  # which imports this module

        return KIND

    def lanes_of_planes(self, fabric: FabricSpec) -> list[VirtualLanes]:
        """Return the virtual lanes of each plane of a fabric."""
        return [self.in_plane(fabric, plane).lanes(fabric, plane) for plane in range(fabric.planes)]

    def intermediates_of(self, fabric: FabricSpec, plane: int) -> Intermediates | None:
        """Return the intermediates of a plane; None if it has none."""
        found = self.in_plane(fabric, plane).intermediates
        return None if found is None else found(fabric, plane)
