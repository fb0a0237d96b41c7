"""Aggregation trees: per job and plane, which switch is the root and who is whose child.

Workers are children of their leaf. A job below one leaf has that leaf as its root; otherwise the leaves are
children of a spine that still has a link to all of them. Planning is pure: it looks at the topology, the
failures and how many trees each spine carries already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.errors import JobError
from controller.failures import Failures
from topologies import FabricSpec, PortSpec, SwitchSpec

MAX_CHILDREN = 32
"""Width of a slot's bitmap of contributors."""


@dataclass(frozen=True)
class TreeChild:
    """A child of a tree node: a worker or a leaf, behind `port`; `rank` is its bit in the bitmap."""

    name: str
    port: int
    rank: int


@dataclass(frozen=True)
class TreeParent:
    """The next node towards the root, behind `port`; `rank` is this node's rank among its children."""

    name: str
    port: int
    rank: int


@dataclass(frozen=True)
class TreeNode:
    """A switch in a tree; the root has no parent."""

    switch: str
    children: tuple[TreeChild, ...]
    parent: TreeParent | None = None

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
        """Return the node of this switch, if it is in the tree."""
        return next((node for node in self.nodes if node.switch == switch), None)

    def links(self) -> Iterable[frozenset[str]]:
        """Links that the tree uses, each as the set of its two ends."""
        return (frozenset((node.switch, child.name)) for node in self.nodes for child in node.children)

    def is_hit_by(self, failures: Failures) -> bool:
        """Tell whether a failure takes a switch or a link of the tree."""
        return any(node.switch in failures.switches for node in self.nodes) or any(
            link in failures.links for link in self.links()
        )


def plan_tree(
    fabric: FabricSpec,
    plane: int,
    hosts: Sequence[str],
    failures: Failures,
    trees_per_root: Mapping[str, int],
) -> AggregationTree:
    """Plan the tree of a job's hosts in one plane.

    Args:
        fabric: where.
        plane: which plane.
        hosts: names of the workers, in order of their ranks.
        failures: what is down.
        trees_per_root: how many trees each switch is the root of; the spine with the fewest is taken.

    Raises:
        JobError: a node would have more children than a bitmap has bits, or no root reaches all leaves.

    """
    workers = _workers_by_leaf(fabric, plane, hosts, failures)
    if len(workers) == 1:
        leaf, ports = next(iter(workers.items()))
        return AggregationTree(plane, (TreeNode(leaf, _children(leaf, ports)),))
    leaves = sorted(workers, key=lambda name: fabric.switch(name).index)
    root = _choose_root(fabric, plane, leaves, failures, trees_per_root)
    down = {port.peer.node: port for port in root.fabric_ports}
    children = _children(root.name, [down[leaf] for leaf in leaves])
    nodes = [TreeNode(root.name, children)]
    for child in children:
        up = fabric.switch(root.name).port(child.port).peer.port
        parent = TreeParent(root.name, up, child.rank)
        nodes.append(TreeNode(child.name, _children(child.name, workers[child.name]), parent))
    return AggregationTree(plane, tuple(nodes))


def _workers_by_leaf(
    fabric: FabricSpec, plane: int, hosts: Sequence[str], failures: Failures
) -> dict[str, list[PortSpec]]:
    workers: dict[str, list[PortSpec]] = {}
    for name in hosts:
        leaf = fabric.leaf_of(name, plane)
        port = leaf.port(fabric.host(name).nic(plane).leaf_port)
        if not failures.is_up(leaf.name, port):
            raise JobError(f"host {name} cannot take part in plane {plane}: its link to {leaf.name} is down")
        workers.setdefault(leaf.name, []).append(port)
    return workers


def _children(switch: str, ports: Sequence[PortSpec]) -> tuple[TreeChild, ...]:
    if len(ports) > MAX_CHILDREN:
        raise JobError(
            f"{switch} would have {len(ports)} children in the tree (valid: at most {MAX_CHILDREN})"
        )
    return tuple(TreeChild(port.peer.node, port.number, rank) for rank, port in enumerate(ports))


def _choose_root(
    fabric: FabricSpec,
    plane: int,
    leaves: Sequence[str],
    failures: Failures,
    trees_per_root: Mapping[str, int],
) -> SwitchSpec:
    candidates = [
        spine
        for spine in fabric.spines(plane)
        if set(leaves) <= {port.peer.node for port in failures.live_ports(spine)}
    ]
    if not candidates:
        raise JobError(f"no spine of plane {plane} reaches all leaves of the job: {', '.join(leaves)}")
    return min(candidates, key=lambda spine: (trees_per_root.get(spine.name, 0), spine.index))
