"""Converts a network's nodes and links to a fabric with one plane; names, ports and addresses are kept.

Addresses that a file does not give: a host's IPv6 address is `fd00::` plus its IPv4 address; switch n, from 0, has
address n + 1 of 198.18.0.0/15 (RFC 2544's block, which no real network uses). Port numbers without a link are dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

from weft.quantities.limits import MAX_RATE_BPS
from weft.topologies import addressing
from weft.topologies.circuits import links_of
from weft.topologies.distances import distances_from_any
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import Endpoint, FabricSpec, HostSpec, LinkSpec, NicSpec, PortSpec, SwitchSpec
from weft.topologies.limits import delay, queue_capacity
from weft.topologies.networks.fields import MIN_RATE_BPS
from weft.topologies.networks.host_commands import understand
from weft.topologies.networks.model import (
    DEFAULT_QUEUE_PACKETS,
    DEFAULT_RATE_BPS,
    PACKET_BYTES,
    NetworkHost,
    NetworkLink,
    NetworkSwitch,
)

ROLE = "switch"
_SWITCHES_IPV4 = int(IPv4Address("198.18.0.0"))
_SWITCHES_IPV6 = int(IPv6Address("fd00:0:0:1::"))
_HOSTS_IPV6 = int(IPv6Address("fd00::"))
_MOST_SWITCHES = 2**16


def fabric_of(
    hosts: Sequence[NetworkHost],
    switches: Sequence[NetworkSwitch],
    links: Sequence[NetworkLink],
    parameters: Mapping[str, object],
) -> FabricSpec:
    """Return the fabric. Raises TopologyError: a figure is out of range, or a name is unknown."""
    if not hosts:
        raise TopologyError("a fabric needs a host")
    require_range("switches", len(switches), 1, _MOST_SWITCHES)
    names = {host.name for host in hosts}
    ports = _ports(names, switches, links)
    tiers = _tiers(names, switches, links)
    specs = tuple(
        SwitchSpec(
            name=switch.name,
            device_id=require_range("device_id", switch.device_id, 0, 2**31),
            plane=0,
            index=index,
            role=ROLE,
            tier=tiers[switch.name],
            address=IPv4Address(_SWITCHES_IPV4 + index + 1),
            ipv6=IPv6Address(_SWITCHES_IPV6 + index + 1),
            mac=f"02:12:00:{index >> 8:02x}:{index & 0xFF:02x}:00",
            ports=ports[switch.name],
            coordinates=(index,),
        )
        for index, switch in enumerate(switches)
    )
    by_name = {spec.name: spec for spec in specs}
    at = {link.a: link for link in links if link.a in names}
    found = tuple(_host(index, host, at, by_name) for index, host in enumerate(hosts))
    return FabricSpec(
        planes=1,
        hosts=found,
        switches=specs,
        links=links_of(specs),
        parameters=parameters,
        plane_networks=(_networks(found),),
    )


def _ports(
    hosts: set[str], switches: Sequence[NetworkSwitch], links: Sequence[NetworkLink]
) -> dict[str, tuple[PortSpec, ...]]:
    found: dict[str, dict[int, PortSpec]] = {switch.name: {} for switch in switches}
    for link in links:
        spec = _spec(link)
        a, b = Endpoint(link.a, link.a_port), Endpoint(link.b, link.b_port)
        for here, peer in ((a, b), (b, a)):
            if here.node in hosts:
                continue
            if here.node not in found:
                raise TopologyError(f"no node is named {here.node!r}", valid=f"{', '.join([*hosts, *found][:8])}, …")
            number = require_range("port", here.port, 1, addressing.MAX_PORTS)
            found[here.node][number] = PortSpec(
                number=number,
                interface=addressing.interface_name(here.node, number),
                peer=peer,
                peer_interface=addressing.interface_name(peer.node, peer.port),
                peer_is_host=peer.node in hosts,
                link=spec,
            )
    for switch in switches:
        if switch.cpu_port is not None:
            _add_cpu_port(switch.name, switch.cpu_port, found[switch.name])
    return {name: tuple(_without_gaps(name, ports)) for name, ports in found.items()}


def _add_cpu_port(switch: str, number: int, ports: dict[int, PortSpec]) -> None:
    """Add the port that leads to a controller, with the figures of a link that gives none."""
    require_range("cpu_port", number, 1, addressing.MAX_PORTS)
    if number in ports:
        raise TopologyError(f"cpu_port {number} of {switch} has a link", valid="a number without one")
    interface, cpu_interface = addressing.cpu_interface_names(switch)
    ports[number] = PortSpec(
        number=number,
        interface=interface,
        peer=Endpoint(cpu_interface, 0),
        peer_interface=cpu_interface,
        peer_is_host=False,
        link=LinkSpec(DEFAULT_RATE_BPS, 0, DEFAULT_QUEUE_PACKETS * PACKET_BYTES),
        leads_to_controller=True,
    )


def _without_gaps(switch: str, ports: Mapping[int, PortSpec]) -> list[PortSpec]:
    """Return the ports from 1 on; numbers without a link become dark ports without a peer."""
    if not ports:
        return []
    link = next(iter(ports.values())).link
    return [ports.get(number) or _dark(switch, number, link) for number in range(1, 1 + max(ports))]


def _dark(switch: str, number: int, link: LinkSpec) -> PortSpec:
    nothing = Endpoint("nothing", number)
    return PortSpec(
        number=number,
        interface=addressing.interface_name(switch, number),
        peer=nothing,
        peer_interface="",
        peer_is_host=False,
        link=link,
        circuit=nothing,
    )


def _spec(link: NetworkLink) -> LinkSpec:
    return LinkSpec(
        require_range("rate_bps", link.rate_bps, MIN_RATE_BPS, MAX_RATE_BPS),
        delay(link.delay_ps),
        queue_capacity(link.queue_capacity_bytes),
    )


def _tiers(hosts: set[str], switches: Sequence[NetworkSwitch], links: Sequence[NetworkLink]) -> dict[str, int]:
    """Return each switch's distance in links from the nearest switch with hosts; the highest if unreachable."""
    neighbours: dict[str, list[str]] = {switch.name: [] for switch in switches}
    for link in links:
        if link.a not in hosts and link.a in neighbours and link.b in neighbours:
            neighbours[link.a].append(link.b)
            neighbours[link.b].append(link.a)
    edges = [link.b for link in links if link.a in hosts]
    found = distances_from_any(edges, lambda name: neighbours.get(name, []))
    highest = max(found.values(), default=0)
    return {switch.name: found.get(switch.name, highest) for switch in switches}


def _host(index: int, host: NetworkHost, at: Mapping[str, NetworkLink], switches: Mapping[str, SwitchSpec]) -> HostSpec:
    if host.name not in at:
        raise TopologyError(f"host {host.name} has no link", valid="one")
    link = at[host.name]
    switch = switches[link.b]
    ipv4 = IPv4Interface(host.ipv4)
    commands = understand(tuple(host.commands))
    named = commands.gateway or host.gateway
    gateway = switch.address if named is None else IPv4Address(named)
    macs = {**dict(host.neighbours), **dict(commands.neighbours)}
    nic = NicSpec(
        number=0,
        plane=0,
        interface=addressing.interface_name(host.name, 0),
        mac=host.mac,
        ipv4=ipv4,
        ipv6=IPv6Interface((_HOSTS_IPV6 | int(ipv4.ip), 64)),
        gateway_ipv4=gateway,
        gateway_ipv6=switch.ipv6,
        gateway_mac=macs.get(str(gateway), switch.mac),
        neighbours=tuple(macs.items()),
        switch=link.b,
        switch_port=link.b_port,
        link=_spec(link),
    )
    return HostSpec(host.name, index, (nic,))


def _networks(hosts: Sequence[HostSpec]) -> tuple[IPv4Network, IPv6Network]:
    """Return the smallest IPv4 and IPv6 networks that contain all hosts' addresses."""
    addresses = [int(host.nics[0].ipv4.ip) for host in hosts]
    bits = (min(addresses) ^ max(addresses)).bit_length()
    network = IPv4Network((min(addresses), 32 - bits), strict=False)
    return network, IPv6Network((_HOSTS_IPV6, 64))
