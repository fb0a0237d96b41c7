"""Minimal routes of dragonflies and dragonfly+: to a link to the destination's group, over it, and to the destination.

Lanes prevent deadlocks: a packet changes to the next lane when it leaves a group (J. Kim et al., Technology-Driven,
Highly-Scalable Dragonfly Topology, ISCA 2008, section 4.1). If several links lead to a group, the nearest ones share
the load. If all of them have failed, packets go through as few other groups as possible, in the last lane: such detours
may close a cycle of buffers, so the controller searches for cycles after failures.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.lanes import LaneRule, VirtualLanes
from weft.controller.routing.routes import NextHop, NextHops
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec, SwitchSpec
from weft.topologies.distances import Rings, distances_from

Live = Sequence[Sequence[tuple[int, NextHop]]]
LANES = 2


class DragonflyMinimal(ShortestPaths):
    """The routes of a plane. A failure within a group recomputes that group, a failure between groups all groups."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._group = [_group_of(switch) for switch in self._switches]
        self._members: dict[int, list[int]] = {}
        for place, group in enumerate(self._group):
            self._members.setdefault(group, []).append(place)
        self._bits = {group: sum(1 << place for place in places) for group, places in self._members.items()}
        self._within: dict[int, dict[int, int]] = {}
        self._group_distances: dict[int, dict[int, int]] = {}
        self._exits: dict[int, dict[int, dict[int, NextHops]]] = {}

    def _touched(self, live: Live, _rings: Rings) -> set[int]:
        before = self._live
        self._within, self._exits, self._group_distances = {}, {}, {}
        if not before:
            return set(range(len(live)))
        changed = [place for place, ports in enumerate(live) if ports != before[place]]
        if any(self._leaving(live, place) != self._leaving(before, place) for place in changed):
            return set(range(len(live)))
        return {other for place in changed for other in self._members[self._group[place]]}

    def _leaving(self, live: Live, place: int) -> list[tuple[int, NextHop]]:
        """Return a router's live links to other groups, each with its peer."""
        return [(peer, hop) for peer, hop in live[place] if self._group[peer] != self._group[place]]

    def next_hops_of(self, place: int) -> dict[NextHops, int]:
        """Return the next hops towards all switches: individually within the group, by group outside."""
        own = self._group[place]
        ways: dict[tuple[int, ...], NextHops] = {}
        towards: dict[NextHops, int] = {}
        for group, bits in self._bits.items():
            if group == own:
                continue
            exits = self._exits_towards(own, group)
            if place in exits:
                hops = exits[place]
            else:
                gateways = tuple(exits)
                if gateways not in ways:
                    ways[gateways] = self._nearer(place, gateways)
                hops = ways[gateways]
            if hops:
                towards[hops] = towards.get(hops, 0) | bits
        for other in self._members[own]:
            if other != place and (hops := self._nearer(place, (other,))):
                towards[hops] = towards.get(hops, 0) | 1 << other
        return towards

    def _exits_towards(self, own: int, group: int) -> dict[int, NextHops]:
        """Return a group's routers with links on the way to another group, each with these links."""
        exits = self._exits_of(own)
        if group in exits:
            return exits[group]
        distance = self._distances_to(group)
        if own not in distance:
            return {}
        merged: dict[int, NextHops] = {}
        for after, routers in exits.items():
            if distance.get(after) == distance[own] - 1:
                for router, hops in routers.items():
                    merged[router] = (*merged.get(router, ()), *hops)
        return merged

    def _exits_of(self, own: int) -> dict[int, dict[int, NextHops]]:
        """Return a group's live links to other groups, by destination group and router."""
        if own not in self._exits:
            exits: dict[int, dict[int, NextHops]] = {}
            for member in self._members[own]:
                for peer, hop in self._leaving(self._live, member):
                    routers = exits.setdefault(self._group[peer], {})
                    routers[member] = (*routers.get(member, ()), hop)
            self._exits[own] = exits
        return self._exits[own]

    def _nearer(self, place: int, targets: Sequence[int]) -> NextHops:
        """Return the links within the group that lead one hop nearer to the nearest of the target switches."""
        distances = [
            (hops, self._distances_within(target))
            for target in targets
            if (hops := self._distances_within(target).get(place)) is not None
        ]
        least = min((hops for hops, _ in distances), default=0)
        ways = [distance for hops, distance in distances if hops == least]
        return tuple(
            hop
            for peer, hop in self._live[place]
            if self._group[peer] == self._group[place] and any(distance.get(peer) == least - 1 for distance in ways)
        )

    def _distances_within(self, target: int) -> dict[int, int]:
        """Return the hops to a switch from every switch of its group, over links of the group."""
        if target not in self._within:
            group = self._group[target]
            self._within[target] = distances_from(
                target,
                lambda place: (peer for peer, _ in self._live[place] if self._group[peer] == group),
            )
        return self._within[target]

    def _distances_to(self, target: int) -> dict[int, int]:
        """Return the number of links between groups to a target group, from each group that reaches it."""
        if target not in self._group_distances:
            self._group_distances[target] = distances_from(target, self._exits_of)
        return self._group_distances[target]


def lanes_by_group(fabric: FabricSpec, plane: int, count: int = LANES) -> VirtualLanes:
    """Return lanes in which a packet moves to the next lane, if any, whenever it leaves a group."""
    rules = {
        switch.name: tuple(
            LaneRule(lane=lane, to=lane + 1, egress_port=port.number)
            for port in switch.fabric_ports
            if fabric.switch(port.peer.node).group != switch.group
            for lane in range(count - 1)
        )
        for switch in fabric.switches_of_plane(plane)
    }
    return VirtualLanes(count, rules)


def objection_to_groups(fabric: FabricSpec) -> str:
    """Return why a fabric is not a dragonfly; empty if every two groups of each plane are joined."""
    for plane in fabric.training_planes:
        switches = fabric.switches_of_plane(plane)
        without = next((switch.name for switch in switches if switch.group is None), None)
        if without is not None:
            return f"{without} is in no group (valid: dragonflies)"
        joined = {
            (switch.group, fabric.switch(port.peer.node).group) for switch in switches for port in switch.fabric_ports
        }
        groups = sorted({_group_of(switch) for switch in switches})
        for group in groups:
            for other in groups:
                if group != other and (group, other) not in joined:
                    return f"no link joins groups {group} and {other} of plane {plane} (valid: dragonflies)"
    return ""


def _group_of(switch: SwitchSpec) -> int:
    assert switch.group is not None
    return switch.group


KIND = RoutingKind(
    name="dragonfly_minimal",
    summary="on a dragonfly or dragonfly+, over one global link, with a lane for each group",
    tables=("ipv4_lpm", "ipv6_lpm", "ecmp"),
    plane=DragonflyMinimal,
    objection=objection_to_groups,
    is_deadlock_free=lambda _fabric: False,
    lanes=lanes_by_group,
)
