"""Valiant's routes on dragonflies: minimal to a random group, and from there on (Kim et al., ISCA 2008, section 4.1).

Packets to their own group, or with an unreachable random group, take the minimal route. Three lanes prevent deadlocks:
a packet changes to the next lane whenever it leaves a group.
"""

from __future__ import annotations

from functools import partial

from weft.controller.routing.dragonfly_minimal import DragonflyMinimal, lanes_by_group, objection_to_groups
from weft.controller.routing.intermediates import Intermediates
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.through_intermediates import VALIANT_TABLES, ThroughIntermediates
from weft.topologies import FabricSpec

LANES = 3


def through_groups(fabric: FabricSpec, plane: int, *, compares_queues: bool = False) -> ThroughIntermediates:
    """Return the routes of a plane, minimal and through other groups."""
    return ThroughIntermediates(
        DragonflyMinimal(fabric, plane),
        groups_of(fabric, plane, compares_queues=compares_queues),
        lanes_by_group(fabric, plane, LANES),
    )


def groups_of(fabric: FabricSpec, plane: int, *, compares_queues: bool = False) -> Intermediates:
    """Return the groups of a plane as intermediates."""
    groups = [switch.group for switch in fabric.switches_of_plane(plane)]
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    return Intermediates(tuple(numbers[group] for group in groups), compares_queues)


KIND = RoutingKind(
    name="dragonfly_valiant",
    summary="on a dragonfly, through a random group",
    tables=VALIANT_TABLES,
    plane=through_groups,
    objection=objection_to_groups,
    is_deadlock_free=lambda _fabric: False,
    lanes=partial(lanes_by_group, count=LANES),
    intermediates=groups_of,
)
