"""A program that knows nothing of Weft, and the entries with which it forwards in a leaf-spine fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from weft import topologies
from weft.clocks.lab import Lab
from weft.controller.installed import read_installed
from weft.topologies import FabricSpec, SwitchSpec

PLAIN_P4 = Path(__file__).parents[1] / "dropin" / "programs" / "basic_forward.p4"
TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
FABRIC_SECTION = "fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2}\n"


def route(address: str, length: int, port: int, mac: str) -> dict[str, Any]:
    """An entry of `ipv4_lpm`."""
    return {
        "table": "MyIngress.ipv4_lpm",
        "match": {"hdr.ipv4.dstAddr": [address, length]},
        "action_name": "MyIngress.ipv4_forward",
        "action_params": {"dstAddr": mac, "port": port},
    }


def entries_of(fabric: FabricSpec, switch: SwitchSpec) -> dict[str, Any]:
    """A host's address by its port; what is elsewhere over the first port to a switch that leads there."""
    routes = []
    for host in fabric.hosts:
        nic = host.nics[0]
        own = nic.switch == switch.name
        port = next(
            each
            for each in switch.ports
            if (each.peer.node == host.name if own else each.peer.node in _towards(fabric, switch, nic.switch))
        )
        mac = nic.mac if own else fabric.switch(port.peer.node).mac
        routes.append(route(str(nic.ipv4.ip), 32, port.number, mac))
    return {"table_entries": routes}


def _towards(fabric: FabricSpec, switch: SwitchSpec, leaf: str) -> set[str]:
    return {leaf} if switch.role == "spine" else {each.name for each in fabric.switches_with_role(0, "spine")}


def write_entries(folder: Path, fabric: FabricSpec = TOPOLOGY) -> dict[str, Path]:
    """Write a file for each switch; return them by switch."""
    files = {}
    for switch in fabric.switches:
        files[switch.name] = folder / f"{switch.name}.json"
        files[switch.name].write_text(json.dumps(entries_of(fabric, switch)), encoding="utf-8")
    return files


def held(lab: Lab, switch: str) -> list[str]:
    """What a switch has of what controllers write, as text."""
    return sorted(map(str, lab.controller.call(read_installed(lab.controller.session(switch)))))
