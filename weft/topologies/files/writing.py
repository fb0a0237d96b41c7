"""Writes a fabric to a file that kind `file` can read."""

from __future__ import annotations

import json
from typing import Any

import networkx

from weft.quantities.units import shortest_rate, shortest_size, shortest_time
from weft.topologies.addressing import switch_name
from weft.topologies.builder import role_letter
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import FabricSpec, LinkSpec, SwitchSpec


def written(fabric: FabricSpec, format_name: str) -> str:
    """Return hosts, switches and links, without scale-up links, as the text of a `node_link` or `graphml` file.

    Raises:
        TopologyError: the format cannot be written.

    """
    if format_name not in _WRITERS:
        raise TopologyError(f"format {format_name!r} is not written", valid=_WRITERS)
    return _WRITERS[format_name](_graph(fabric))


def _graph(fabric: FabricSpec) -> networkx.MultiGraph[Any]:
    # Hosts first, with their links in NIC order: reading keeps this order.
    graph: networkx.MultiGraph[Any] = networkx.MultiGraph()
    for host in fabric.hosts:
        graph.add_node(host.name, type="host")
    for switch in fabric.switches:
        graph.add_node(switch.name, **_switch(switch))
    for host in fabric.hosts:
        for nic in host.nics:
            graph.add_edge(host.name, nic.switch, **_link(nic.link))
    at_hosts = {host.name for host in fabric.hosts}
    for link in fabric.links:
        if link.a.node not in at_hosts:
            graph.add_edge(link.a.node, link.b.node, **_link(link.link))
    return graph


def _switch(switch: SwitchSpec) -> dict[str, object]:
    attributes: dict[str, object] = {
        "type": "switch",
        "role": switch.role,
        "tier": switch.tier,
        "plane": switch.plane,
        "coordinates": ",".join(map(str, switch.coordinates)),
    }
    if switch.group is not None:
        attributes["group"] = switch.group
    if switch.name != switch_name(switch.plane, role_letter(switch.role), switch.index):
        attributes["letter"] = switch.name.removeprefix(f"p{switch.plane}").removesuffix(str(switch.index))
    return attributes


def _link(link: LinkSpec) -> dict[str, object]:
    figures: dict[str, object] = {
        "rate": shortest_rate(link.rate_bps),
        "delay": shortest_time(link.delay_ps) if link.delay_ps else "0ps",
    }
    if link.shared_memory_bytes is None:
        figures["queue_capacity"] = shortest_size(link.queue_capacity_bytes)
    return figures  # otherwise the port has its rate's default memory, which files omit


def _node_link(graph: networkx.MultiGraph[Any]) -> str:
    tree = {
        "directed": False,
        "multigraph": True,
        "graph": {},
        "nodes": [{"id": name, **attributes} for name, attributes in graph.nodes(data=True)],
        "edges": [
            {"source": a, "target": b, "key": key, **attributes}
            for a, b, key, attributes in graph.edges(keys=True, data=True)
        ],
    }
    return json.dumps(tree, indent=1) + "\n"


def _graphml(graph: networkx.MultiGraph[Any]) -> str:
    return "\n".join(networkx.generate_graphml(graph)) + "\n"


_WRITERS = {"node_link": _node_link, "graphml": _graphml}
WRITTEN_FORMATS = tuple(_WRITERS)
