"""Valiant's routes on grids: in dimension order to a random switch, and in dimension order from there on.

The two parts use different lanes, so that they cannot wait for each other in a cycle.
"""

from __future__ import annotations

from weft.controller.routing.dimension_order import KIND as DIMENSION_ORDER
from weft.controller.routing.dimension_order import DimensionOrder, datelines
from weft.controller.routing.intermediates import Intermediates, two_phases
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.lanes import VirtualLanes
from weft.controller.routing.through_intermediates import VALIANT_TABLES, ThroughIntermediates
from weft.topologies import FabricSpec


def through_switches(fabric: FabricSpec, plane: int, *, compares_queues: bool = False) -> ThroughIntermediates:
    """Return the routes of a plane, in dimension order and through other switches."""
    intermediates = switches_of(fabric, plane, compares_queues=compares_queues)
    return ThroughIntermediates(DimensionOrder(fabric, plane), intermediates, lanes_of_phases(fabric, plane))


def switches_of(fabric: FabricSpec, plane: int, *, compares_queues: bool = False) -> Intermediates:
    """Return the switches of a plane as intermediates."""
    return Intermediates(tuple(range(len(fabric.switches_of_plane(plane)))), compares_queues)


def lanes_of_phases(fabric: FabricSpec, plane: int) -> VirtualLanes:
    """Return two sets of the lanes of dimension order, one for each part."""
    return two_phases(datelines(fabric, plane))


KIND = RoutingKind(
    name="dimension_order_valiant",
    summary="on a torus, mesh or HyperX, in dimension order through a random switch",
    tables=VALIANT_TABLES,
    plane=through_switches,
    objection=DIMENSION_ORDER.objection,
    is_deadlock_free=lambda _fabric: True,
    lanes=lanes_of_phases,
    intermediates=switches_of,
)
