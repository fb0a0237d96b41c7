"""Requirements of lossless classes on a fabric's routes: virtual lanes, and no cycle of buffer dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.controller.failures import NO_FAILURES
from weft.controller.routing import ROUTING_KINDS, PlaneRouting, RoutingKind, plane_routings
from weft.controller.routing.channels import Channel, find_cycle
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class LosslessSettings:
    """Traffic classes that PFC or credits protect from loss under congestion; may be empty."""

    classes: tuple[int, ...] = ()


def cycle_of_routes(fabric: FabricSpec, routing: str) -> tuple[Channel, ...]:
    """Return a cycle of buffer dependencies of a kind of routing in a fabric without failures; empty if none.

    Raises:
        SettingError: the kind cannot route the fabric.

    """
    kind = ROUTING_KINDS.named(routing)
    if kind.is_deadlock_free(fabric):
        return ()
    planes = plane_routings(routing, fabric)
    for plane in planes:
        plane.plan(NO_FAILURES)
    return cycle_of_planes(fabric, kind, planes)


def cycle_of_planes(fabric: FabricSpec, kind: RoutingKind, planes: Sequence[PlaneRouting]) -> tuple[Channel, ...]:
    """Return a cycle of buffer dependencies in the planes' latest plans; empty if there is none."""
    for number, plane in enumerate(planes):
        switches = fabric.switches_of_plane(number)
        found = kind.intermediates_of(fabric, number)
        intermediates = () if found is None else found.of_switches
        lanes, layers = kind.in_plane(fabric, number).lanes(fabric, number), plane.layers()
        if cycle := find_cycle(switches, plane.destinations(), lanes, layers, intermediates):
            return cycle
    return ()
