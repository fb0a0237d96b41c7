"""The fabric as a networkx graph, for analysis and for other tools' drawings."""

from __future__ import annotations

from typing import Any

import networkx

from weft.topologies.fabric import FabricSpec


def to_networkx(fabric: FabricSpec) -> networkx.Graph[Any]:
    """Return an undirected graph: nodes (names) have `kind`, `plane` and `spec`, edges have `ports` and `link`.

    It is a MultiGraph if the fabric has parallel links.
    """
    graph: networkx.Graph[Any] = networkx.MultiGraph() if fabric.has_parallel_links else networkx.Graph()
    for host in fabric.hosts:
        graph.add_node(host.name, kind="host", plane=None, spec=host)
    for switch in fabric.switches:
        graph.add_node(switch.name, kind=switch.role, plane=switch.plane, spec=switch)
    for link in fabric.links:
        graph.add_edge(
            link.a.node,
            link.b.node,
            ports={link.a.node: link.a.port, link.b.node: link.b.port},
            link=link.link,
        )
    return graph
