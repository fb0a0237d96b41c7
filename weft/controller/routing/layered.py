"""Layered paths for any graph, computed centrally as InfiniBand's subnet managers do (DFSSSP).

Each pair of switches has one path: among the shortest in hops, the one over the least loaded links
(`balanced_paths.py`). Paths are divided into layers, each with a separate lane and without a cycle of buffers, so that
lossless classes cannot deadlock (J. Domke, T. Hoefler and W. Nagel, Deadlock-Free Oblivious Routing for Arbitrary
Topologies, IPDPS 2011). The paper puts all paths in one layer and moves the paths of each cycle's weakest dependency to
the next. Here a path immediately goes into the first layer in which it closes no cycle (`dependency_layers.py`), and
shortest paths that fit into existing layers are preferred to those that need a new one. The first switch chooses the
lane by destination; packets stay in it.

A failure changes only the paths that it cuts, and their layers. If new paths need more layers than the intact fabric,
all paths are recomputed; if these also need more, all routes are up*/down* in the first lane until something is
repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from weft.controller.entities import Entity, entry
from weft.controller.failures import Failures
from weft.controller.routing.balanced_paths import NO_LINK, Links
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.lanes import MOST_LANES, Layers, VirtualLanes
from weft.controller.routing.layered_paths import LayeredPaths, SubnetManager, subnet_manager
from weft.controller.routing.routes import NextHop, NextHops, Prefix
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.controller.routing.up_down import UpDown
from weft.topologies import FabricSpec
from weft.topologies.distances import Rings

Live = Sequence[Sequence[tuple[int, NextHop]]]
Entities = tuple[Entity, ...]


class Layered(ShortestPaths):
    """The routes of a plane. A failure recomputes the switches that lose paths."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._links = Links.between(self._switches)
        self._manager = _manager_of(fabric, plane)
        self._is_up_down = False
        self._up_down_of: Callable[[], UpDown] = cache(lambda: UpDown(fabric, plane))
        self._failures = Failures()
        self._towards: list[dict[int, int]] = []
        self._layers: dict[str, dict[int, int]] = {}
        self._layer_entries: dict[tuple[Prefix, int], Entity] = {}
        self._planned: dict[str, tuple[Entities, dict[int, int], Entities]] = {}

    def plan(self, failures: Failures) -> dict[str, Entities]:
        """Return every switch's routes, and the layers of its hosts' packets."""
        return {switch: self._with_layers(switch, routes) for switch, routes in super().plan(failures).items()}

    def update(self, failures: Failures) -> frozenset[str]:
        """Adapt the routes to the failures and return the switches with changed routes."""
        self._failures = failures
        return super().update(failures)

    def layers(self) -> Layers:
        """Return the layers of the latest plan; see PlaneRouting."""
        return self._layers

    def _touched(self, live: Live, _rings: Rings) -> set[int]:
        everything = set(range(len(live)))
        was_up_down, before = self._is_up_down, self._towards
        up = [{hop.port for _, hop in ports} for ports in live]
        down = {
            link
            for link, (place, port) in enumerate(zip(self._links.start, self._links.port, strict=True))
            if port not in up[place]
        }
        paths = self._manager.around(down)
        self._is_up_down = paths is None
        if paths is None:
            self._up_down_of().update(self._failures)
            self._layers, self._towards = {}, []
            return everything
        self._layers = self._layers_of(paths)
        self._towards = self._towards_of(paths)
        if was_up_down or not before:
            return everything
        return {
            place for place in everything if live[place] != self._live[place] or self._towards[place] != before[place]
        }

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return one next hop to each switch with hosts, and to adjacent switches without hosts."""
        if self._is_up_down:
            return self._up_down_of().next_hops_of(place)
        hops = {hop.port: hop for _, hop in self._live[place]}
        towards: dict[NextHops, int] = {
            (hops[self._links.port[link]],): bits for link, bits in self._towards[place].items()
        }
        for peer, hop in self._live[place]:
            if not self._switches[peer].host_ports and not any(bits >> peer & 1 for bits in towards.values()):
                towards[(hop,)] = towards.get((hop,), 0) | 1 << peer
        return towards

    def _towards_of(self, paths: LayeredPaths) -> list[dict[int, int]]:
        """Return each switch's outgoing links and their destinations, by the switch's place."""
        towards: list[dict[int, int]] = [{} for _ in self._switches]
        for destination, tree in paths.trees.items():
            bit = 1 << destination
            for place, link in enumerate(tree):
                if link != NO_LINK:
                    towards[place][link] = towards[place].get(link, 0) | bit
        return towards

    def _layers_of(self, paths: LayeredPaths) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {switch.name: {} for switch in self._switches}
        for destination, layers in paths.layers.items():
            bit = 1 << destination
            for switch, layer in zip(self._switches, layers, strict=True):
                if layer:
                    found[switch.name][layer] = found[switch.name].get(layer, 0) | bit
        return found

    def _with_layers(self, switch: str, routes: Entities) -> Entities:
        """Return a switch's routes with layer entries; the same object as before for the same routes and layers."""
        layers = self._layers.get(switch, {})
        known = self._planned.get(switch)
        if known is None or known[0] is not routes or known[1] != layers:
            known = self._planned[switch] = (routes, layers, (*routes, *self._entities_of_layers(layers)))
        return known[2]

    def _entities_of_layers(self, layers: dict[int, int]) -> list[Entity]:
        return [
            self._layer_entry(lpm.prefix, layer)
            for destinations, layer in self.entries_of(layers)
            for lpm in destinations.entries
        ]

    def _layer_entry(self, prefix: Prefix, layer: int) -> Entity:
        found = self._layer_entries.get((prefix, layer))
        if found is None:
            table = "layer_by_ipv4" if prefix.version == 4 else "layer_by_ipv6"
            found = entry(table, {"destination": str(prefix)}, "set_layer", number=layer)
            self._layer_entries[prefix, layer] = found
        return found


def _manager_of(fabric: FabricSpec, plane: int) -> SubnetManager:
    switches = fabric.switches_of_plane(plane)
    return subnet_manager(Links.between(switches), tuple(len(switch.host_ports) for switch in switches))


def _lanes(fabric: FabricSpec, plane: int) -> VirtualLanes:
    count = _manager_of(fabric, plane).intact.count
    return VirtualLanes(count, has_layers=count > 1)


def _objection(fabric: FabricSpec) -> str:
    for plane in fabric.training_planes:
        count = _manager_of(fabric, plane).intact.count
        if count > MOST_LANES:
            return (
                f"its paths in plane {plane} need {count} lanes, and data has {MOST_LANES} (valid: graphs that need no "
                "more; up_down needs one)"
            )
    return ""


KIND = RoutingKind(
    name="layered",
    summary="on any graph, balanced single paths, in enough lanes to prevent deadlocks",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp", "layer_by_ipv4", "layer_by_ipv6"),
    plane=Layered,
    objection=_objection,
    is_deadlock_free=lambda _fabric: True,
    lanes=_lanes,
)
