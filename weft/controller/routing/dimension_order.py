"""Dimension order: on a grid, a packet travels the first dimension completely, then the second, and so on.

Lanes prevent deadlocks in the rings of a torus: a packet that crosses the link between the last and the first switch of
a ring (the dateline) changes to lane 1, and returns to lane 0 when it turns into another dimension (W. Dally and C.
Seitz, Deadlock-Free Message Routing in Multiprocessor Interconnection Networks, 1987).

Packets take the shorter way around a ring; for destinations halfway round, switches with even coordinates send upwards
and others downwards. If a link on the shorter way has failed, all packets that need it go the other way. Packets never
leave the order of dimensions, so some destinations become unreachable if failures cut a row in two or remove the switch
where a packet would turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.controller.routing.grid import Grid, Row, objection_to_grid
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.lanes import LaneRule, VirtualLanes
from weft.controller.routing.routes import NextHops
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec
from weft.topologies.distances import Rings


class DimensionOrder(ShortestPaths):
    """The routes of a plane. A failure recomputes the switches that share a row with it."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._grid = Grid(self._switches)

    def _touched(self, live: Sequence[Sequence[tuple[int, object]]], _rings: Rings) -> set[int]:
        if not self._live:
            return set(range(len(live)))
        changed = [place for place, ports in enumerate(live) if ports != self._live[place]]
        return {other for place in changed for row in self._grid.rows_of(place) for other in row.places} | set(changed)

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return the next hops towards all switches, in the first dimension in which coordinates differ."""
        towards: dict[NextHops, int] = {}
        alike = (1 << len(self._switches)) - 1
        for dimension, row in enumerate(self._grid.rows_of(place)):
            here = self._switches[place].coordinates[dimension]
            for coordinate, step in self._steps(row, here).items():
                next_hops = tuple(hop for peer, hop in self._live[place] if peer == row.places[step])
                switches = alike & self._grid.with_coordinate(dimension, coordinate)
                towards[next_hops] = towards.get(next_hops, 0) | switches
            alike &= self._grid.with_coordinate(dimension, here)
        return towards

    def _steps(self, row: Row, here: int) -> dict[int, int]:
        """Return the next coordinate on the way to each reachable switch of a row, by that switch's coordinate."""
        if row.is_complete:
            neighbours = {peer for peer, _ in self._live[row.places[here]]}
            return {there: there for there, place in enumerate(row.places) if place in neighbours}
        up, down = self._reach(row, here, 1), self._reach(row, here, -1)
        steps = {}
        for there in range(row.length):
            above, below = (there - here) % row.length, (here - there) % row.length
            prefers_up = above < below or (above == below and here % 2 == 0)
            if there != here and (above <= up or below <= down):
                goes_up = above <= up and (prefers_up or below > down)
                steps[there] = (here + (1 if goes_up else -1)) % row.length
        return steps

    def _reach(self, row: Row, here: int, direction: int) -> int:
        """Return how many hops are possible in a direction until a link is missing or down."""
        for hops in range(row.length - 1):
            at = (here + direction * hops) % row.length
            after = row.places[(at + direction) % row.length]
            if all(peer != after for peer, _ in self._live[row.places[at]]):
                return hops
        return row.length - 1


def datelines(fabric: FabricSpec, plane: int) -> VirtualLanes:
    """Return the lanes of dimension order; one lane if no row is a ring."""
    switches = fabric.switches_of_plane(plane)
    grid = Grid(switches)
    rules: dict[str, tuple[LaneRule, ...]] = {}
    for place, switch in enumerate(switches):
        of_switch: list[LaneRule] = []
        for dimension, row in enumerate(grid.rows_of(place)):
            here = switch.coordinates[dimension]
            coordinates = {row.places[there]: there for there in range(row.length) if there != here}
            ports = {
                port.number: coordinates[peer]
                for port in switch.fabric_ports
                if (peer := grid.place_of(port.peer.node)) in coordinates
            }
            for egress, there in ports.items():
                if row.is_ring and abs(there - here) == row.length - 1:
                    of_switch.append(LaneRule(lane=0, to=1, egress_port=egress))
                elif grid.has_rings:
                    of_switch += [LaneRule(1, 1, ingress, egress) for ingress in ports if ingress != egress]
                    of_switch.append(LaneRule(lane=1, to=0, egress_port=egress))
        rules[switch.name] = tuple(of_switch)
    return VirtualLanes(2, rules) if grid.has_rings else VirtualLanes()


def _objection(fabric: FabricSpec) -> str:
    problems = (objection_to_grid(fabric.switches_of_plane(plane)) for plane in fabric.training_planes)
    return next(filter(None, problems), "")


KIND = RoutingKind(
    name="dimension_order",
    summary="on a torus, mesh or HyperX, one dimension after the other, with datelines",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp"),
    plane=DimensionOrder,
    objection=_objection,
    is_deadlock_free=lambda _fabric: True,
    lanes=datelines,
)
