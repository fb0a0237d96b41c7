"""Which nodes of a fabric share a partition of the virtual clock: a function of the topology, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from networkx.utils import UnionFind

from weft.topologies import FabricSpec


def partition_nodes(fabric: FabricSpec) -> list[list[str]]:
    """Return the nodes of each partition, by name, in the fabric's order.

    A switch has a partition of its own; hosts share one if they are attached to the same leaves, or if scale-up links
    join them, which know no partitions. Nodes joined by links
    without delay share one, too, because between partitions it is the delay that lets each go ahead alone.
    """
    nodes = [*(switch.name for switch in fabric.switches), *(host.name for host in fabric.hosts)]
    together = UnionFind(nodes)
    first_at: dict[tuple[str, ...], str] = {}
    for host in fabric.hosts:
        leaves = tuple(nic.leaf for nic in host.nics)
        together.union(first_at.setdefault(leaves, host.name), host.name)
    for ranks in fabric.scale_up.hosts(len(fabric.hosts)) if fabric.scale_up else ():
        together.union(*(fabric.hosts[rank].name for rank in ranks))
    for link in fabric.links:
        if link.link.delay_ps == 0:
            together.union(link.a.node, link.b.node)
    return _in_order(nodes, together)


def _in_order(nodes: Sequence[str], together: UnionFind) -> list[list[str]]:
    partitions: dict[str, list[str]] = {}
    for node in nodes:
        partitions.setdefault(together[node], []).append(node)
    return list(partitions.values())


def number_by_node(partitions: Iterable[Iterable[str]]) -> dict[str, int]:
    """Return the place of each node's partition."""
    return {node: number for number, nodes in enumerate(partitions) for node in nodes}
