"""p4-utils' p4app.json: its `topology` with `hosts`, `switches`, `links`, `default` and an `assignment_strategy`.

What the fields mean is what p4-utils and Mininet make of them: `bw` in Mbit/s, `delay` as Linux's tc reads it (a number
is microseconds), `loss` in per cent, `max_queue_size` in packets, all in both directions. Ports that a link does not
name are the lowest free ones, in the natural order of the links' ends. A switch with `cpu_port` has a link more, to
p4-utils' bridge `sw-cpu`, which is numbered with the others. Device ids count from 1, Thrift ports from 9090
and gRPC ports from 9559, in the order of the switches' names. Paths are relative to the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from weft.hints import did_you_mean
from weft.quantities.units import shown
from weft.topologies.addressing import cpu_interface_names
from weft.topologies.errors import TopologyError
from weft.topologies.networks import fields as read
from weft.topologies.networks.fields import Fields
from weft.topologies.networks.model import (
    DEFAULT_QUEUE_PACKETS,
    DEFAULT_RATE_BPS,
    PACKET_BYTES,
    Network,
    NetworkHost,
    NetworkLink,
    NetworkSwitch,
    SwitchSetup,
)
from weft.topologies.networks.natural_order import natural_order
from weft.topologies.networks.p4_utils_addresses import Assigned, Attached, assign

FORMAT = "p4_utils"
_FIRST_GRPC_PORT = 9559
_MICROSECOND_PS = 10**6
_TOP_FIELDS = ("p4_src", "program", "cli", "pcap_dump", "enable_log", "topology")
_TOPOLOGY_FIELDS = ("assignment_strategy", "default", "links", "hosts", "switches", "routers")
_HOST_FIELDS = ("defaultRoute", "commands")
_SWITCH_FIELDS = ("p4_src", "program", "cli_input", "runtime_json", "grpc_port", "device_id", "cpu_port")
_SILENT_FIELDS = (
    "weight",
    "auto_arp_tables",
    "auto_gw_arp",
    "thrift_port",
    "log_enabled",
    "log_dir",
    "pcap_dump",
)
_CPU_BRIDGE = "sw-cpu"
_LINK_FIELDS = (
    "port1",
    "port2",
    "addr1",
    "addr2",
    "params1",
    "params2",
    "bw",
    "delay",
    "loss",
    "max_queue_size",
)


@dataclass
class _Link:
    """A link as the file has it; ports and MACs are filled in later."""

    place: str
    ends: tuple[str, str]
    options: Fields
    ports: list[int | None]


def read_p4_utils(tree: Fields, path: Path) -> Network:
    """Return the network of a parsed file. Raises TopologyError with the place."""
    topology = tree.child("topology")
    notes = [*_unused(tree, _TOP_FIELDS), *_unused(topology, _TOPOLOGY_FIELDS)]
    if topology.get("routers"):
        raise TopologyError(
            f"{topology.at('routers')}: routers are not supported (valid: hosts and switches)"
        )
    hosts = [read.node_name(name, "topology.hosts") for name in topology.child("hosts")]
    names = sorted(topology.child("switches"), key=natural_order)
    device_ids = _numbered(topology.child("switches"), names, "device_id", 1, 2**31)
    for host in hosts:
        notes += _unused(topology.child("hosts").child(host), _HOST_FIELDS)
    links = _links(topology, hosts, names)
    for link in links:
        notes += _unused(link.options, _LINK_FIELDS)
    cpu_links = list(_cpu_links(topology.child("switches"), names))
    _number_ports([*links, *cpu_links])
    cpu_ports = {each.ends[0]: each.ports[0] for each in cpu_links}
    ports = _numbered(topology.child("switches"), names, "grpc_port", _FIRST_GRPC_PORT, 65535)
    setups = {}
    for name in names:
        fields = topology.child("switches").child(name)
        notes += _unused(fields, _SWITCH_FIELDS)
        setups[name] = _setup(fields, ports[name], path.parent)
    return Network(
        path=path,
        folder=path.parent,
        format=FORMAT,
        hosts=_hosts(topology, hosts, device_ids, links),
        switches=tuple(
            NetworkSwitch(name, device_ids[name], cpu_ports.get(name))
            for name in sorted(names, key=device_ids.__getitem__)
        ),
        links=tuple(_link(link, hosts, topology.child("default")) for link in links),
        setups=setups,
        program=_path(tree, path.parent),
        notes=tuple(notes),
    )


def _unused(fields: Fields, known: tuple[str, ...]) -> Iterator[str]:
    for name in fields:
        if name not in known and name not in _SILENT_FIELDS:
            yield f"{fields.at(name)}: means nothing here"


def _cpu_links(switches: Fields, names: list[str]) -> Iterator[_Link]:
    for name in names:
        fields = switches.child(name)
        if not fields.flag("cpu_port", False):
            continue
        try:
            cpu_interface_names(name)
        except TopologyError as error:
            raise TopologyError(f"{fields.at('cpu_port')}: {error}") from None
        yield _Link(fields.at("cpu_port"), (name, _CPU_BRIDGE), Fields({}, ""), [None, 0])


def _numbered(fields: Fields, names: list[str], key: str, first: int, highest: int) -> dict[str, int]:
    """Return a number of each switch: the one that it gives, or the lowest that none has."""
    given = {name: fields.child(read.node_name(name, fields.place)).whole(key, 1, highest) for name in names}
    taken = {number for number in given.values() if number is not None}
    found = {}
    for name, number in given.items():
        found[name] = _lowest_free(taken, first) if number is None else number
        taken.add(found[name])
    return found


def _setup(fields: Fields, grpc_port: int, folder: Path) -> SwitchSetup:
    cli_input, runtime_json = fields.text("cli_input"), fields.text("runtime_json")
    return SwitchSetup(
        grpc_port,
        _path(fields, folder),
        None if runtime_json is None else (folder / runtime_json).resolve(),
        None if cli_input is None else (folder / cli_input).resolve(),
    )


def _path(fields: Fields, folder: Path) -> Path | None:
    text = fields.text("p4_src") or fields.text("program")
    return None if text is None else (folder / text).resolve()


def _links(topology: Fields, hosts: list[str], switches: list[str]) -> list[_Link]:
    links = []
    for place, item in read.link_items(topology, 2, 3):
        options = Fields(item[2] if len(item) > 2 else {}, f"{place}[2]")
        for end in item[:2]:
            if end not in hosts and end not in switches:
                raise TopologyError(
                    f"{place}: {shown(end)} is no node; {did_you_mean(end, [*hosts, *switches])}"
                )
        ports: list[int | None] = []
        for end, key in zip(item[:2], ("port1", "port2"), strict=True):
            number = options.get(key)
            ports.append(
                0 if end in hosts else None if number is None else read.switch_port(number, options.at(key))
            )
        links.append(_Link(place, (item[0], item[1]), options, ports))
    return links


def _number_ports(links: list[_Link]) -> None:
    taken: dict[str, set[int]] = {}
    for link in links:
        for end, port in zip(link.ends, link.ports, strict=True):
            if port is not None:
                taken.setdefault(end, set()).add(port)
    for link in sorted(links, key=lambda each: tuple(map(natural_order, each.ends))):
        for side, end in enumerate(link.ends):
            if link.ports[side] is None:
                numbers = taken.setdefault(end, set())
                link.ports[side] = _lowest_free(numbers, 1)
                numbers.add(_lowest_free(numbers, 1))


def _lowest_free(taken: set[int], first: int) -> int:
    number = first
    while number in taken:
        number += 1
    return number


def _link(link: _Link, hosts: list[str], defaults: Fields) -> NetworkLink:
    def value(name: str) -> Any:
        return link.options.get(name) if name in link.options else defaults.get(name)

    def at(name: str) -> str:
        return link.options.at(name) if name in link.options else defaults.at(name)

    (a, b), (a_port, b_port) = link.ends, (int(port or 0) for port in link.ports)
    if b in hosts:
        a, a_port, b, b_port = b, b_port, a, a_port
    bandwidth, delay, loss, queue = map(value, ("bw", "delay", "loss", "max_queue_size"))
    return NetworkLink(
        a,
        a_port,
        b,
        b_port,
        DEFAULT_RATE_BPS if bandwidth is None else read.rate_bps(bandwidth, at("bw")),
        0 if delay is None else read.delay_ps(delay, at("delay"), _MICROSECOND_PS),
        DEFAULT_QUEUE_PACKETS * PACKET_BYTES
        if queue is None
        else read.queue_bytes(queue, at("max_queue_size")),
        0.0 if loss is None else read.loss_probability(loss, at("loss")),
    )


def _hosts(
    topology: Fields, names: list[str], device_ids: Mapping[str, int], links: list[_Link]
) -> tuple[NetworkHost, ...]:
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
    found = []
    for name in names:
        fields = topology.child("hosts").child(name)
        if name not in own:
            raise TopologyError(f"{fields.place}: has no link to a switch (valid: one)")
        gateway = _gateway(fields) or own[name].gateway
        neighbours = []
        if gateway is not None and gateway == own[name].gateway and defaults.flag("auto_gw_arp", True):
            neighbours.append((gateway, own[name].port_mac))
        if defaults.flag("auto_arp_tables", True):
            neighbours += [
                (str(other.ipv4.ip), other.mac)
                for other in own.values()
                if other is not own[name] and other.ipv4.network == own[name].ipv4.network
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
            )
        )
    return tuple(found)


def _with_own_addresses(assigned: Assigned, link: _Link, side: int) -> Assigned:
    """Return the addresses that a link gives a host in place of those that it would be assigned."""
    parameters, mac = link.options.child(f"params{side + 1}"), f"addr{side + 1}"
    port_mac = f"addr{2 - side}"
    ip = parameters.get("ip")
    return Assigned(
        assigned.ipv4 if ip is None else IPv4Interface(read.ipv4_interface(ip, parameters.at("ip"))),
        assigned.gateway if ip is None else None,
        read.mac_address(link.options.get(mac), link.options.at(mac))
        if mac in link.options
        else assigned.mac,
        read.mac_address(link.options.get(port_mac), link.options.at(port_mac))
        if port_mac in link.options
        else assigned.port_mac,
    )


def _gateway(fields: Fields) -> str | None:
    """Return the gateway of `via 10.0.0.1`; None where there is none."""
    text = fields.text("defaultRoute")
    if text is None:
        return None
    return read.ipv4_address(text.split()[-1] if text.split() else text, fields.at("defaultRoute"))
