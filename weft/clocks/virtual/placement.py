"""Gives every node of a fabric the engine of its partition."""

from __future__ import annotations

from weft.clocks.virtual.partitioning import partition_nodes
from weft.engine import Engine, Partitions
from weft.switch.daemon.placement import Placement
from weft.topologies import FabricSpec


def engines_by_node(fabric: FabricSpec, partitions: Partitions, together: bool = False) -> dict[str, Engine]:
    """Return a new partition's engine for each set of nodes that share one; all share one if they are `together`.

    If there are several planes, the switches of each are a group. A single plane is no group: its hosts would go to the
    other workers, and every packet of a host would come from another worker.
    """
    planes = {switch.name: switch.plane for switch in fabric.switches} if fabric.planes > 1 else {}
    engines: dict[str, Engine] = {}
    if together:
        return dict.fromkeys((node for nodes in partition_nodes(fabric) for node in nodes), partitions.add())
    for nodes in partition_nodes(fabric):
        in_planes = {planes.get(node) for node in nodes}
        group = in_planes.pop() if len(in_planes) == 1 else None
        engines |= dict.fromkeys(nodes, partitions.add(group=group))
    return engines


def place(fabric: FabricSpec, partitions: Partitions, engines: dict[str, Engine]) -> Placement:
    """Return where each switch is, and what is at its ports."""
    return Placement(
        partitions,
        {switch.device_id: engines[switch.name] for switch in fabric.switches},
        {
            (switch.device_id, port.number): engines[port.peer.node]
            for switch in fabric.switches
            for port in switch.host_ports
        },
    )
