"""Aggregation trees: the root and the parent of each node, per job and plane.

Workers are children of their leaf. If all workers are on one leaf, it is the root. Otherwise the root is a switch of
the lowest possible tier that reaches all the job's leaves downwards. If there is none, as in a torus or a dragonfly,
the root is a central switch, and the tree follows shortest paths to it. Every switch in between is a node. Planning has
no side effects: it depends on the topology, the failures and the load of present trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.controller.errors import JobError
from weft.controller.failures import Failures
from weft.controller.tree_load import IDLE, TreeLoad, upper_end
from weft.topologies import Endpoint, FabricSpec, PortSpec, SwitchSpec
from weft.topologies.addressing import IpVersion
from weft.topologies.distances import distance_rings, distances_from

_MOST_SHOWN = 8


@dataclass(frozen=True)
class TreeChild:
    """A child of a tree node, a worker or a switch reached through `port`; `rank` is its bit in the bitmap."""

    name: str
    port: int
    rank: int


@dataclass(frozen=True)
class TreeParent:
    """The next node towards the root, reached through `port`; `rank` is this node's rank among its children."""

    name: str
    port: int
    rank: int


@dataclass(frozen=True)
class TreeNode:
    """A switch in a tree; the root has no parent."""

    switch: str
    children: tuple[TreeChild, ...]
    parent: TreeParent | None = None

    def hosts(self, fabric: FabricSpec) -> list[str]:
        """Return the workers among its children, in order of their ranks."""
        switch = fabric.switch(self.switch)
        return [child.name for child in self.children if switch.port(child.port).peer_is_host]

    @property
    def full_bitmap(self) -> int:
        """Bitmap of a slot to which all children have contributed."""
        return (1 << len(self.children)) - 1


@dataclass(frozen=True)
class AggregationTree:
    """A job's tree in one plane; the root is first among `nodes`."""

    plane: int
    nodes: tuple[TreeNode, ...]

    @property
    def root(self) -> TreeNode:
        """The node without a parent."""
        return self.nodes[0]

    def node(self, switch: str) -> TreeNode | None:
        """Return the node of this switch; None if it is not in the tree."""
        return next((node for node in self.nodes if node.switch == switch), None)

    def ports(self) -> Iterable[Endpoint]:
        """Ports towards children, the upper ends of all links that the tree uses."""
        return (Endpoint(node.switch, child.port) for node in self.nodes for child in node.children)

    def is_hit_by(self, failures: Failures) -> bool:
        """Return whether a failure hits a switch or a link of the tree."""
        return any(node.switch in failures.switches for node in self.nodes) or any(
            port in failures.ports for port in self.ports()
        )


def plan_tree(
    fabric: FabricSpec,
    plane: int,
    hosts: Sequence[str],
    failures: Failures,
    load: TreeLoad = IDLE,
    place: int = 0,
) -> AggregationTree:
    """Plan the tree of a job's hosts in one plane, over one NIC of each host.

    Args:
        fabric: the fabric.
        plane: number of the plane.
        hosts: names of the workers, in order of their ranks.
        failures: links and switches to avoid.
        load: load of present trees. Among the smallest trees with room on all switches and links, prefer the one with
            the least load on its fullest link, then the fewest trees at its root, then the first in `load.order`.
        place: place of the NIC among a host's NICs in the plane, from 0.

    Raises:
        JobError: a node would have more children than a bitmap has bits, or no root reaches all leaves.

    """
    workers = _workers_by_leaf(fabric, fabric.nics_of_planes[plane][place], hosts, failures)
    # A tree of one switch needs no root above it, and no link between switches.
    if len(workers) == 1:
        leaf, workers_ports = next(iter(workers.items()))
        return AggregationTree(plane, (TreeNode(leaf, _children(fabric, leaf, workers_ports)),))
    leaves = sorted(workers, key=lambda name: fabric.switch(name).index)
    root, parents = _choose_root(fabric, plane, leaves, failures, load)
    ports: dict[str, list[PortSpec]] = {name: workers[name] for name in leaves}
    for up in parents.values():
        ports.setdefault(up.peer.node, []).append(fabric.switch(up.peer.node).port(up.peer.port))
    children = {name: _children(fabric, name, below) for name, below in ports.items()}
    ranks = {child.name: child.rank for below in children.values() for child in below}
    others = sorted(parents, key=lambda name: -fabric.switch(name).tier)
    nodes = (TreeNode(name, children[name], _parent(name, parents, ranks)) for name in [root.name, *others])
    return AggregationTree(plane, tuple(nodes))


def has_tree(fabric: FabricSpec, plane: int, hosts: Sequence[str], failures: Failures, place: int = 0) -> bool:
    """Return whether a plane has a tree for a job's hosts, not considering slots; see `plan_tree`."""
    try:
        plan_tree(fabric, plane, hosts, failures, place=place)
    except JobError:
        return False
    return True


def _parent(name: str, parents: Mapping[str, PortSpec], ranks: Mapping[str, int]) -> TreeParent | None:
    if name not in parents:
        return None
    return TreeParent(parents[name].peer.node, parents[name].number, ranks[name])


def _workers_by_leaf(
    fabric: FabricSpec, number: int, hosts: Sequence[str], failures: Failures
) -> dict[str, list[PortSpec]]:
    workers: dict[str, list[PortSpec]] = {}
    for name in hosts:
        nic = fabric.host(name).nic(number)
        leaf = fabric.switch(nic.switch)
        port = leaf.port(nic.switch_port)
        if not failures.is_up(leaf.name, port):
            raise JobError(f"host {name} cannot take part in plane {nic.plane}: its link to {leaf.name} is down")
        workers.setdefault(leaf.name, []).append(port)
    return workers


def place_in_tree(fabric: FabricSpec, node: TreeNode, ip_version: IpVersion) -> dict[str, Any]:
    """Return a node's action parameters about its children and its parent, 0 without one."""
    parent = fabric.switch(node.parent.name) if node.parent else None
    return {
        "full_bitmap": node.full_bitmap,
        "is_root": 0 if node.parent else 1,
        "parent_port": node.parent.port if node.parent else 0,
        "parent_mac": parent.mac if parent else "00:00:00:00:00:00",
        # The program has one parameter for both IP versions and pads IPv4 with leading zeros.
        "parent_address": int(parent.address_of(ip_version)) if parent else 0,
        "rank_at_parent": node.parent.rank if node.parent else 0,
    }


def _children(fabric: FabricSpec, switch: str, ports: Sequence[PortSpec]) -> tuple[TreeChild, ...]:
    most = fabric.tree_children
    if len(ports) > most:
        raise JobError(f"{switch} would have {len(ports)} children in the tree", valid=f"at most {most}")
    return tuple(TreeChild(port.peer.node, port.number, rank) for rank, port in enumerate(ports))


def _choose_root(
    fabric: FabricSpec,
    plane: int,
    leaves: Sequence[str],
    failures: Failures,
    load: TreeLoad = IDLE,
) -> tuple[SwitchSpec, dict[str, PortSpec]]:
    """Return the root, and every other node's port towards it, leaves first."""
    candidates = [
        (root, parents)
        for root in fabric.switches_of_plane(plane)
        if (parents := _ports_up(fabric, root, leaves, failures, load)) is not None
    ]
    if not candidates:
        return _choose_centre(fabric, plane, leaves, failures, load)
    return min(
        candidates,
        key=lambda each: (*load.preference(*each), each[0].index),
    )


def _ports_up(
    fabric: FabricSpec, root: SwitchSpec, leaves: Sequence[str], failures: Failures, load: TreeLoad
) -> dict[str, PortSpec] | None:
    """Return each node's port towards the root, leaves first; None if the root cannot reach all leaves downwards.

    A node's parent is the root if possible, otherwise preferably a switch that is in the tree already.
    """
    below = _reached_downwards(fabric, root, failures)
    if not below.issuperset(leaves):
        return None
    chosen: dict[str, PortSpec] = {}
    pending = [name for name in leaves if name != root.name]
    for name in pending:
        ways = [
            port
            for port in failures.live_ports(fabric.switch(name))
            if port.peer.node in below and fabric.switch(port.peer.node).tier > fabric.switch(name).tier
        ]
        ways.sort(
            key=lambda port: (
                # Prefer the root, then nodes already in the tree: each further switch costs slots and a hop.
                port.peer.node != root.name,
                port.peer.node not in pending,
                not load.has_room([port.peer.node]),
                load.of_link(upper_end(port)),
                load.order(str(upper_end(port))),
            )
        )
        chosen[name] = ways[0]
        if ways[0].peer.node != root.name and ways[0].peer.node not in pending:
            pending.append(ways[0].peer.node)
    return chosen


def _choose_centre(
    fabric: FabricSpec,
    plane: int,
    leaves: Sequence[str],
    failures: Failures,
    load: TreeLoad = IDLE,
) -> tuple[SwitchSpec, dict[str, PortSpec]]:
    """Return the switch closest to its farthest leaf, and every other node's port on a shortest path to it."""
    switches = fabric.switches_of_plane(plane)
    places = {switch.name: place for place, switch in enumerate(switches)}
    rings = distance_rings([[places[port.peer.node] for port in failures.live_ports(switch)] for switch in switches])
    wanted = sum(1 << places[name] for name in leaves)
    radii: dict[str, int] = {}
    for name, place in places.items():
        missing = wanted
        for hops, ring in enumerate(rings):
            missing &= ~ring[place]
            if not missing:
                radii[name] = hops
                break
    if not radii:
        shown = ", ".join(leaves[:_MOST_SHOWN]) + (", …" if len(leaves) > _MOST_SHOWN else "")
        raise JobError(f"no switch of plane {plane} reaches all leaves of the job: {shown}")
    root = min(
        radii,
        key=lambda name: (
            radii[name],
            not load.has_room([name]),
            load.roots.get(name, 0),
            load.order(name),
            places[name],
        ),
    )
    return fabric.switch(root), _ports_inwards(fabric, root, leaves, failures)


def _ports_inwards(fabric: FabricSpec, root: str, leaves: Sequence[str], failures: Failures) -> dict[str, PortSpec]:
    """Return each node's port towards the root, nearest nodes first; prefer parents with the fewest children."""
    distance = distances_from(root, lambda name: (port.peer.node for port in failures.live_ports(fabric.switch(name))))
    children: Counter[str] = Counter()
    chosen: dict[str, PortSpec] = {}
    pending = sorted((name for name in leaves if name != root), key=lambda name: -distance[name])
    while pending:
        name = pending.pop(0)
        ways = [
            port for port in failures.live_ports(fabric.switch(name)) if distance[port.peer.node] == distance[name] - 1
        ]
        # A slot's bitmap has few bits, so children are spread over all possible parents.
        best = min(ways, key=lambda port: (children[port.peer.node], port.number))
        chosen[name] = best
        children[best.peer.node] += 1
        parent = best.peer.node
        if parent != root and parent not in chosen and parent not in pending:
            pending.append(parent)
            pending.sort(key=lambda name: -distance[name])
    return dict(sorted(chosen.items(), key=lambda each: (distance[each[0]], fabric.switch(each[0]).index)))


def _reached_downwards(fabric: FabricSpec, root: SwitchSpec, failures: Failures) -> set[str]:
    def below(name: str) -> Iterable[str]:
        switch = fabric.switch(name)
        peers = (port.peer.node for port in failures.live_ports(switch))
        return (peer for peer in peers if fabric.switch(peer).tier < switch.tier)

    return set(distances_from(root.name, below))
