"""The network as p4-utils' controllers read it with `load_topo`: the node-link graph in topology.json.

Nodes and fields have p4-utils' names. MACs of ports between switches, which p4-utils draws at random, are fixed and in
the same range as switches' MACs here. `weft.thrift` listens on `thrift_port`, by which `weft.system.thrift_ports` finds
the switch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.cache.files import read_bytes
from weft.topologies.fabric import FabricSpec, PortSpec, SwitchSpec
from weft.topologies.networks.model import LinkFacts, Network, NetworkHost, NetworkLink, SwitchSetup

FILE_NAME = "topology.json"
_MAX_FILE_BYTES = 64 * 1024 * 1024


def graph_of(network: Network, fabric: FabricSpec, compiled: Mapping[str, tuple[Path, Path]]) -> dict[str, Any]:
    """Return the graph; `compiled` has each switch's program as JSON and its P4Info."""
    hosts = [
        {**host.others, "id": host.name, "isHost": True, "ip": host.ipv4, "mac": host.mac} for host in network.hosts
    ]
    switches = [
        _switch(fabric.switch(switch.name), network.setups[switch.name], compiled[switch.name])
        for switch in network.switches
    ]
    by_name = {host.name: host for host in network.hosts}
    links = [
        _link(link, facts, by_name.get(link.a), fabric)
        for link, facts in zip(network.links, network.link_facts, strict=True)
    ]
    pairs = {frozenset((link["node1"], link["node2"])) for link in links}
    # Depending on its version, networkx calls them "links" or "edges".
    return {
        "directed": False,
        "multigraph": len(pairs) < len(links),
        "graph": {},
        "nodes": [*hosts, *switches],
        "links": links,
        "edges": links,
    }


def is_graph_file(path: Path) -> bool:
    """Return whether a file holds such a graph and may therefore be overwritten; never raises."""
    try:
        tree = json.loads(read_bytes(path, _MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and tree.keys() >= {"directed", "multigraph", "nodes", "links"}


def _switch(switch: SwitchSpec, setup: SwitchSetup, compiled: tuple[Path, Path]) -> dict[str, Any]:
    json_path, p4info_path = compiled
    node: dict[str, Any] = {
        **setup.others,
        "id": switch.name,
        "isSwitch": True,
        "isP4Switch": True,
        "isP4RuntimeSwitch": True,
        "device_id": switch.device_id,
        "grpc_port": setup.grpc_port,
        "thrift_port": setup.thrift_port,
        "json_path": str(json_path),
        "p4rt_path": str(p4info_path),
        "cpu_port": False,
    }
    for port in switch.ports:
        if port.leads_to_controller:
            node["cpu_port"] = True
            node["cpu_port_num"] = port.number
            node["cpu_intf"] = port.interface
            node["cpu_ctl_intf"] = port.peer_interface
    return node


def _link(link: NetworkLink, facts: LinkFacts, host: NetworkHost | None, fabric: FabricSpec) -> dict[str, Any]:
    """Return a link; `host` is at its first end, or None if that is a switch."""
    far = fabric.switch(link.b).port(link.b_port)
    found: dict[str, Any] = {
        **facts.others,
        "source": link.a,
        "target": link.b,
        "node1": link.a,
        "node2": link.b,
        "port1": link.a_port,
        "port2": link.b_port,
        "intfName2": far.interface,
        "ip1": facts.a_ip,
        "ip2": facts.b_ip,
    }
    if host is not None:
        found |= {
            "intfName1": host.interface,
            "addr1": host.mac,
            "ip1": host.ipv4,
            "addr2": fabric.host(link.a).nics[0].gateway_mac,
        }
    else:
        near = fabric.switch(link.a).port(link.a_port)
        found |= {
            "intfName1": near.interface,
            "addr1": _port_mac(fabric.switch(link.a), near),
            "addr2": _port_mac(fabric.switch(link.b), far),
        }
    # networkx treats a weight of None as a missing link; without weights, paths count hops.
    return found | {
        name: value for name, value in (("bw", facts.bw_mbps), ("weight", facts.weight)) if value is not None
    }


def _port_mac(switch: SwitchSpec, port: PortSpec) -> str:
    octets = (2, 0x13, *switch.index.to_bytes(2, "big"), *port.number.to_bytes(2, "big"))
    return ":".join(f"{octet:02x}" for octet in octets)
