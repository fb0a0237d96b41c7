"""The definition of a kind of routing; each other file of this package defines one as `KIND`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from weft.controller.entities import Entity
from weft.controller.failures import Failures
from weft.controller.routing.channels import PortDestinations
from weft.controller.routing.intermediates import Intermediates
from weft.controller.routing.lanes import ONE_LANE, Layers, VirtualLanes
from weft.topologies import FabricSpec


class PlaneRouting(Protocol):
    """The routes of one plane, from one set of failures to the next."""

    def plan(self, failures: Failures) -> dict[str, tuple[Entity, ...]]:
        """Return every switch's entities by name.

        They depend on the fabric and the failures alone, not on earlier plans. A switch whose routes have not
        changed keeps the same tuple object, so that nothing is compared or written for it.
        """

    def destinations(self) -> PortDestinations:
        """Return what the latest plan sends over each port to another switch, by switch and port.

        Destinations are the switches of the plane, as bits by their place in it, then the intermediates if there are
        any, by their numbers.
        """

    def layers(self) -> Layers:
        """Return the lanes in which packets of the latest plan begin: lane 0 unless `VirtualLanes.has_layers`."""


@dataclass(frozen=True)
class RoutingKind:
    """A kind of routing.

    Attributes:
        name: by which settings and topologies choose it.
        summary: one line for people.
        tables: tables of the P4 program that it fills.
        plane: makes the routes of a plane of a fabric.
        objection: why a fabric cannot be routed so; empty if it can.
        is_deadlock_free: whether it is known without a search that lossless classes cannot deadlock on a fabric's
            routes as long as nothing fails. Where it is not, the routes are searched for a cycle of buffers.
        lanes: of a plane of a fabric, the virtual lanes that keep its routes free of such cycles.
        intermediates: of a plane of a fabric, the switches or groups to which packets may go first; None: to none.

    """

    name: str
    summary: str
    tables: tuple[str, ...]
    plane: Callable[[FabricSpec, int], PlaneRouting]
    objection: Callable[[FabricSpec], str]
    is_deadlock_free: Callable[[FabricSpec], bool]
    lanes: Callable[[FabricSpec, int], VirtualLanes] = lambda _fabric, _plane: ONE_LANE
    intermediates: Callable[[FabricSpec, int], Intermediates] | None = None
