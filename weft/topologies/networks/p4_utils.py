"""p4-utils' p4app.json: its `topology` with `hosts`, `switches`, `links`, `default` and an `assignment_strategy`.

Fields mean the same as in p4-utils and Mininet: `bw` in Mbit/s, `delay` as Linux's tc reads it (a number is
microseconds), `loss` in per cent, `max_queue_size` in packets, all in both directions. Ports that a link does not name
are the lowest free ones, in the natural order of the links' ends. A switch with `cpu_port` has one more link, to
p4-utils' bridge `sw-cpu`, which is numbered with the others. Device ids count from 1, Thrift ports from 9090 and gRPC
ports from 9559, in the order of the switches' names. Paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from typing import Any

from weft.quantities.units import shown
from weft.topologies.errors import TopologyError
from weft.topologies.networks import fields as read
from weft.topologies.networks.fields import Fields
from weft.topologies.networks.model import (
    LinkFacts,
    Network,
    NetworkHost,
    NetworkLink,
    NetworkSwitch,
    SwitchSetup,
    natural_order,
)
from weft.topologies.networks.p4_utils_addresses import Assigned, Attached, assign
from weft.topologies.networks.p4_utils_links import (
    LINK_FIELDS,
    FileLink,
    cpu_links,
    facts_of,
    free_numbers,
    network_link,
    number_ports,
    read_links,
    switch_address,
)

FORMAT = "p4_utils"
_FIRST_GRPC_PORT = 9559
_FIRST_THRIFT_PORT = 9090
_MOST_SCRIPTS = 1000
_MOST_OCTET = 255
_STRATEGIES_OF_SUBNETS = ("mixed", "l3")
"""Strategies in which ports between switches have addresses for controllers."""
_MOST_NEIGHBOURS = 1_000_000
_TOP_FIELDS = ("p4_src", "program", "cli", "pcap_dump", "enable_log", "topology", "exec_scripts", "topology_file")
_OWN_CLASSES = "p4utils."
_TOPOLOGY_FIELDS = ("assignment_strategy", "default", "links", "hosts", "switches", "routers")
_HOST_FIELDS = ("defaultRoute", "commands")
_SWITCH_FIELDS = (
    "p4_src",
    "program",
    "cli_input",
    "runtime_json",
    "grpc_port",
    "thrift_port",
    "device_id",
    "cpu_port",
    "priority_queues_num",
)
_SILENT_FIELDS = (
    "weight",
    "auto_arp_tables",
    "auto_gw_arp",
    "written_by",
    "log_enabled",
    "log_dir",
    "pcap_dump",
)
_FOR_CONTROLLERS = "means nothing here; controllers find it in the graph of the network"


def read_p4_utils(tree: Fields, path: Path) -> Network:
    """Return the network of a parsed file. Raises TopologyError with the place."""
    topology = tree.child("topology")
    notes = [*_unused(tree, _TOP_FIELDS), *_unused(topology, _TOPOLOGY_FIELDS)]
    if topology.get("routers"):
        raise TopologyError("routers are not supported", place=topology.at("routers"), valid="hosts and switches")
    # Not a list: every end of every link is looked up here.
    hosts = dict.fromkeys(read.node_name(name, "topology.hosts") for name in topology.child("hosts"))
    names = sorted(topology.child("switches"), key=natural_order)
    device_ids = _numbered(topology.child("switches"), names, "device_id", 1, 2**31)
    for host in hosts:
        notes += _unused(topology.child("hosts").child(host), _HOST_FIELDS, _FOR_CONTROLLERS)
    links = read_links(topology, hosts, dict.fromkeys(names))
    for link in links:
        notes += _unused(link.options, LINK_FIELDS, _FOR_CONTROLLERS)
    to_controllers = list(cpu_links(topology.child("switches"), names))
    number_ports([*links, *to_controllers])
    cpu_ports = {each.ends[0]: each.ports[0] for each in to_controllers}
    ports = _numbered(topology.child("switches"), names, "grpc_port", _FIRST_GRPC_PORT, 65535)
    thrift_ports = _numbered(topology.child("switches"), names, "thrift_port", _FIRST_THRIFT_PORT, 65535)
    setups = {}
    for name in names:
        fields = topology.child("switches").child(name)
        notes += _unused(fields, _SWITCH_FIELDS, _FOR_CONTROLLERS)
        setups[name] = _setup(fields, ports[name], thrift_ports[name], path.parent)
    has_subnets = topology.text("assignment_strategy") in _STRATEGIES_OF_SUBNETS
    all_links = tuple(network_link(link, hosts, topology.child("default")) for link in links)
    found_hosts, port_addresses = _hosts(topology, hosts, device_ids, links)
    facts = (facts_of(link, found, topology.child("default")) for link, found in zip(links, all_links, strict=True))
    return Network(
        path=path,
        folder=path.parent,
        format=FORMAT,
        hosts=found_hosts,
        switches=tuple(
            NetworkSwitch(name, device_ids[name], cpu_ports.get(name))
            for name in sorted(names, key=device_ids.__getitem__)
        ),
        links=all_links,
        setups=setups,
        program=_program(tree, path.parent),
        notes=tuple(notes),
        scripts=_scripts(tree),
        link_facts=tuple(
            _with_port_addresses(each, found, port_addresses, device_ids if has_subnets else {})
            for each, found in zip(facts, all_links, strict=True)
        ),
        graph_file=tree.path("topology_file", path.parent),
    )


def _unused(fields: Fields, known: tuple[str, ...], why: str = "means nothing here") -> Iterator[str]:
    for name in fields:
        if name not in known and name not in _SILENT_FIELDS and not _is_p4_utils_own(fields.get(name)):
            yield f"{fields.at(name)}: {why}"


def _with_port_addresses(
    facts: LinkFacts, link: NetworkLink, of_hosts: Mapping[str, str], device_ids: Mapping[str, int]
) -> LinkFacts:
    """Return a link's values with the addresses that a strategy attributes to switch ports, where the file has none.

    A port at a host has the host's gateway. Ports between switches of the ids i and j have 20.i.j.1 and 20.i.j.2;
    `device_ids` is empty if the strategy gives them none.
    """
    if link.a in of_hosts:
        return facts if facts.b_ip is not None else replace(facts, b_ip=of_hosts[link.a])
    ids = device_ids.get(link.a, _MOST_OCTET + 1), device_ids.get(link.b, _MOST_OCTET + 1)
    if facts.a_ip is not None or facts.b_ip is not None or max(ids) > _MOST_OCTET:
        return facts
    return replace(facts, a_ip=f"20.{ids[0]}.{ids[1]}.1/24", b_ip=f"20.{ids[0]}.{ids[1]}.2/24")


def _is_p4_utils_own(value: Any) -> bool:
    """Return whether a module or node is part of p4-utils: `P4RuntimeSwitch`, or its compiler with other options."""
    if not isinstance(value, dict):
        return False
    if "object_name" not in value:
        return value.keys() == {"options"}
    return str(value.get("module_name", "")).startswith(_OWN_CLASSES)


def _scripts(tree: Fields) -> tuple[str, ...]:
    """Return the commands of `exec_scripts`; their `reboot_run` only concerns p4-utils' prompt."""
    scripts = tree.get("exec_scripts")
    if scripts is None:
        return ()
    if not isinstance(scripts, list) or len(scripts) > _MOST_SCRIPTS:
        raise TopologyError(
            f"{shown(scripts)} is not valid",
            place="exec_scripts",
            valid=f'[{{"cmd": "…"}}, …], at most {_MOST_SCRIPTS}',
        )
    found = []
    for number, script in enumerate(scripts):
        command = Fields(script, f"exec_scripts[{number}]").text("cmd")
        if command is None:
            raise TopologyError("is missing", place=f"exec_scripts[{number}].cmd", valid="a command")
        found.append(command)
    return tuple(found)


def _numbered(fields: Fields, names: list[str], key: str, first: int, highest: int) -> dict[str, int]:
    """Return each switch's number: the one that it gives, or the lowest free one."""
    given = {name: fields.child(read.node_name(name, fields.place)).whole(key, 1, highest) for name in names}
    free = free_numbers({number for number in given.values() if number is not None}, first)
    return {name: next(free) if number is None else number for name, number in given.items()}


def _setup(fields: Fields, grpc_port: int, thrift_port: int, folder: Path) -> SwitchSetup:
    return SwitchSetup(
        grpc_port,
        _program(fields, folder),
        runtime_json=fields.path("runtime_json", folder),
        commands=fields.path("cli_input", folder),
        thrift_port=thrift_port,
        priority_queues=read.priority_queues(fields.get("priority_queues_num"), fields.at("priority_queues_num")),
        others=_others(fields, _SWITCH_FIELDS),
    )


def _others(fields: Fields, known: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields.get(name) for name in fields if name not in known}


def _program(fields: Fields, folder: Path) -> Path | None:
    return fields.path("p4_src" if "p4_src" in fields else "program", folder)


def _hosts(
    topology: Fields, names: Collection[str], device_ids: Mapping[str, int], links: list[FileLink]
) -> tuple[tuple[NetworkHost, ...], dict[str, str]]:
    """Return the hosts, and the addresses of the switch ports at hosts for which the strategy has some."""
    at_switch = {}
    for link in links:
        for side, end in enumerate(link.ends):
            if end in names:
                at_switch[end] = (link, side)
    attached = [
        Attached(name, other, device_ids[other])
        for name in names
        if name in at_switch and (other := at_switch[name][0].ends[1 - at_switch[name][1]]) in device_ids
    ]
    assigned = assign(topology.text("assignment_strategy") or "manual", attached)
    own = {each.host: _with_own_addresses(assigned[each.host], *at_switch[each.host]) for each in attached}
    defaults = topology.child("default")
    know_each_other = defaults.flag("auto_arp_tables", True)
    of_network: dict[IPv4Network, list[Assigned]] = {}
    for each in own.values():
        of_network.setdefault(each.ipv4.network, []).append(each)
    if know_each_other:
        _require_few_neighbours(of_network.values(), defaults.at("auto_arp_tables"))
    found = []
    for name in names:
        fields = topology.child("hosts").child(name)
        if name not in own:
            raise TopologyError("has no link to a switch", place=fields.place, valid="one")
        gateway = _gateway(fields) or own[name].gateway
        neighbours = []
        gateways = {own[name].gateway, _fake_gateway(*at_switch[name])}
        if gateway is not None and gateway in gateways and defaults.flag("auto_gw_arp", True):
            neighbours.append((gateway, own[name].port_mac))
        if know_each_other:
            neighbours += [
                (str(other.ipv4.ip), other.mac)
                for other in of_network[own[name].ipv4.network]
                if other is not own[name]
            ]
        found.append(
            NetworkHost(
                name,
                str(own[name].ipv4),
                own[name].mac,
                f"{name}-eth0",
                gateway,
                tuple(neighbours),
                fields.texts("commands"),
                _others(fields, _HOST_FIELDS),
            )
        )
    gateways_by_host = {
        each.host: f"{gateway}/{assigned[each.host].ipv4.network.prefixlen}"
        for each in attached
        if (gateway := assigned[each.host].gateway) is not None
    }
    return tuple(found), gateways_by_host


def _require_few_neighbours(networks: Iterable[Sized], place: str) -> None:
    """Check the number of static ARP entries before building them: every host has one for each other in its network."""
    entries = sum(len(hosts) * (len(hosts) - 1) for hosts in networks)
    if entries > _MOST_NEIGHBOURS:
        raise TopologyError(
            f"hosts would have {entries:,} static ARP entries",
            place=place,
            valid=f"at most {_MOST_NEIGHBOURS:,}; or false",
        )


def _fake_gateway(link: FileLink, side: int) -> str | None:
    """Return the address that the file gives the switch port at a host in `sw_ip`, if any."""
    address = switch_address(link, 1 - side)
    return None if address is None else address.partition("/")[0]


def _with_own_addresses(assigned: Assigned, link: FileLink, side: int) -> Assigned:
    """Return a host's assigned addresses, replaced by those that its link gives."""
    parameters, mac = link.options.child(f"params{side + 1}"), f"addr{side + 1}"
    port_mac = f"addr{2 - side}"
    ip = parameters.get("ip")
    return Assigned(
        assigned.ipv4 if ip is None else IPv4Interface(read.ipv4_interface(ip, parameters.at("ip"))),
        assigned.gateway if ip is None else None,
        read.mac_address(link.options.get(mac), link.options.at(mac)) if mac in link.options else assigned.mac,
        read.mac_address(link.options.get(port_mac), link.options.at(port_mac))
        if port_mac in link.options
        else assigned.port_mac,
    )


def _gateway(fields: Fields) -> str | None:
    """Return the gateway of a `defaultRoute` such as `via 10.0.0.1`; None if there is none."""
    text = fields.text("defaultRoute")
    if text is None:
        return None
    return read.ipv4_address(text.split()[-1] if text.split() else text, fields.at("defaultRoute"))
