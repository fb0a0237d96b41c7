"""Rings whose packets all go round one way, as a kind of routing: what deadlocks without a second lane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.topologies.test_builder import torus
from weft.controller.routing import ROUTING_KINDS
from weft.controller.routing.lanes import LaneRule, VirtualLanes
from weft.controller.routing.routes import NextHops
from weft.controller.routing.shortest_paths import KIND, ShortestPaths
from weft.topologies import FabricSpec


class Clockwise(ShortestPaths):
    """From each switch to the next one of the plane, and from the last to the first."""

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        count = len(self._switches)
        onward = next(hop for peer, hop in self._live[place] if peer == (place + 1) % count)
        return {(onward,): (1 << count) - 1 & ~(1 << place)}


def dateline(fabric: FabricSpec, plane: int) -> VirtualLanes:
    """Packets go on in lane 1 from where they pass from the last switch to the first."""
    first, *_, last = fabric.switches_of_plane(plane)
    across = next(port.number for port in last.fabric_ports if port.peer.node == first.name)
    return VirtualLanes(2, {last.name: (LaneRule(0, 1, egress_port=across),)})


def route_clockwise(monkeypatch: pytest.MonkeyPatch, *, with_dateline: bool = False) -> None:
    """Until the test ends, shortest paths are these."""
    kind = replace(KIND, plane=Clockwise, is_deadlock_free=lambda _: False)
    monkeypatch.setitem(ROUTING_KINDS._kinds, KIND.name, replace(kind, lanes=dateline) if with_dateline else kind)


def ring(length: int) -> FabricSpec:
    """Switches in a ring, each with one host."""
    return torus((length,))
