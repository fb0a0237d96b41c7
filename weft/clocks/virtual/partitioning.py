"""Which nodes of a fabric share a partition of the virtual clock: a function of the topology, and of nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.topologies import FabricSpec
from weft.topologies.distances import distances_from


def partition_nodes(fabric: FabricSpec) -> list[list[str]]:
    """Return the nodes of each partition, by name, in the fabric's order.

    A switch has a partition of its own. Hosts share one if they are attached to the same leaves. Where hosts have
    several ranks, the ranks of a host share one, because scale-up links cannot join partitions; together with other
    hosts at their leaves they would be whole blocks of rails, too large for workers to share out. Nodes joined by
    links without delay share one, too, because only a delay lets partitions go ahead alone.
    """
    nodes = [*(switch.name for switch in fabric.switches), *(host.name for host in fabric.hosts)]
    together: dict[str, list[str]] = {node: [] for node in nodes}

    def join(one: str, other: str) -> None:
        together[one].append(other)
        together[other].append(one)

    for hosts in _hosts_together(fabric):
        for host in hosts[1:]:
            join(hosts[0], host)
    for link in fabric.links:
        if link.link.delay_ps == 0:
            join(link.a.node, link.b.node)
    return _in_order(together)


def _hosts_together(fabric: FabricSpec) -> list[list[str]]:
    if fabric.scale_up is not None:
        return [[fabric.hosts[rank].name for rank in ranks] for ranks in fabric.scale_up.hosts(len(fabric.hosts))]
    at_leaves: dict[tuple[str, ...], list[str]] = {}
    for host in fabric.hosts:
        at_leaves.setdefault(tuple(nic.switch for nic in host.nics), []).append(host.name)
    return list(at_leaves.values())


def _in_order(together: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the nodes that are joined, directly or by way of others, in the order of the first of each."""
    partition_of: dict[str, int] = {}
    partitions: list[list[str]] = []
    for node in together:
        if node not in partition_of:
            partition_of.update(dict.fromkeys(distances_from(node, together.__getitem__), len(partitions)))
            partitions.append([])
        partitions[partition_of[node]].append(node)
    return partitions
