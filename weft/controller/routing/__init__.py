"""Kinds of routing: one per file, found by listing this folder (docs/howto/routing.md)."""

from __future__ import annotations

from weft.controller.errors import SettingError
from weft.controller.features.kind import DEFAULT_ROUTING
from weft.controller.route_scope import ALL_ROUTES, RouteScope
from weft.controller.routing.kind import PlaneRouting, RoutingKind
from weft.registry import Registry, constant_of
from weft.topologies import FabricSpec

ROUTING_KINDS: Registry[RoutingKind] = Registry(__name__, "routing", constant_of(RoutingKind), SettingError)


def plane_routings(name: str, fabric: FabricSpec, scope: RouteScope = ALL_ROUTES) -> list[PlaneRouting]:
    """Return the routing of every plane of a fabric, for the addresses in `scope`.

    Raises:
        SettingError: the kind is unknown or cannot route the fabric.

    """
    kind = ROUTING_KINDS.named(name)
    if objection := kind.objection(fabric):
        raise SettingError(f"the fabric cannot be routed by {name}: {objection}")
    planes = [kind.in_plane(fabric, plane).plane(fabric, plane) for plane in range(fabric.planes)]
    for plane in planes:
        plane.limit(scope)
    return planes


__all__ = ["DEFAULT_ROUTING", "ROUTING_KINDS", "PlaneRouting", "RoutingKind", "plane_routings"]
