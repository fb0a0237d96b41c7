"""From what a builder decides (which switches a plane has, which cables join them) to a whole fabric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

from weft.topologies import addressing
from weft.topologies.fabric import (
    Endpoint,
    FabricLink,
    FabricSpec,
    HostSpec,
    LinkSpec,
    NicSpec,
    PortSpec,
    SwitchSpec,
)


@dataclass(frozen=True)
class Place:
    """A switch's place in its plane."""

    role: str
    index: int


@dataclass(frozen=True)
class Cable:
    """A link between two switches of a plane, `lower` being nearer to the hosts."""

    lower: Place
    upper: Place
    link: LinkSpec


@dataclass(frozen=True)
class Design:
    """What all planes are like.

    Attributes:
        planes: how many there are; a host has a NIC in each.
        places: switches of a plane in order of their device ids, leaves first.
        cables: links between them; a switch's ports follow the order in which its cables stand here.
        hosts_per_leaf: hosts on each leaf, on its first ports.
        host_link: of every host.

    """

    planes: int
    places: Sequence[Place]
    cables: Sequence[Cable]
    hosts_per_leaf: int
    host_link: LinkSpec


@dataclass(frozen=True)
class _Addresses:
    name: Callable[[int, int], str]
    ipv4: Callable[[int, int], IPv4Address]
    ipv6: Callable[[int, int], IPv6Address]
    mac: Callable[[int, int], str]


_TIERS: Mapping[str, int] = {"leaf": 0, "spine": 1, "core": 2}
_ADDRESSES: Mapping[str, _Addresses] = {
    "leaf": _Addresses(addressing.leaf_name, addressing.leaf_ipv4, addressing.leaf_ipv6, addressing.leaf_mac),
    "spine": _Addresses(
        addressing.spine_name, addressing.spine_ipv4, addressing.spine_ipv6, addressing.spine_mac
    ),
    "core": _Addresses(addressing.core_name, addressing.core_ipv4, addressing.core_ipv6, addressing.core_mac),
}


def assemble(design: Design, parameters: Mapping[str, object]) -> FabricSpec:
    """Give every node its name, addresses and ports; `parameters` are those of `FabricSpec`."""
    switches = tuple(switch for plane in range(design.planes) for switch in _plane(design, plane))
    leaves = sum(place.role == "leaf" for place in design.places)
    hosts = tuple(_host(design, index) for index in range(leaves * design.hosts_per_leaf))
    return FabricSpec(
        planes=design.planes,
        hosts=hosts,
        switches=switches,
        links=tuple(_links(switches)),
        parameters=parameters,
    )


def _plane(design: Design, plane: int) -> list[SwitchSpec]:
    ports: dict[Place, list[PortSpec]] = {place: [] for place in design.places}
    for place in design.places:
        if place.role == "leaf":
            first = place.index * design.hosts_per_leaf
            names = (addressing.host_name(first + number) for number in range(design.hosts_per_leaf))
            ports[place] += [
                _port(_name(plane, place), number, Endpoint(name, plane), design.host_link, True)
                for number, name in enumerate(names, start=1)
            ]
    for cable in design.cables:
        lower, upper = _name(plane, cable.lower), _name(plane, cable.upper)
        low, up = len(ports[cable.lower]) + 1, len(ports[cable.upper]) + 1
        ports[cable.lower].append(_port(lower, low, Endpoint(upper, up), cable.link, False))
        ports[cable.upper].append(_port(upper, up, Endpoint(lower, low), cable.link, False))
    first_device_id = 1 + plane * len(design.places)
    return [
        SwitchSpec(
            name=_name(plane, place),
            device_id=first_device_id + number,
            plane=plane,
            index=place.index,
            role=place.role,
            tier=_TIERS[place.role],
            address=_ADDRESSES[place.role].ipv4(plane, place.index),
            ipv6=_ADDRESSES[place.role].ipv6(plane, place.index),
            mac=_ADDRESSES[place.role].mac(plane, place.index),
            ports=tuple(ports[place]),
        )
        for number, place in enumerate(design.places)
    ]


def _name(plane: int, place: Place) -> str:
    return _ADDRESSES[place.role].name(plane, place.index)


def _port(node: str, number: int, peer: Endpoint, link: LinkSpec, peer_is_host: bool) -> PortSpec:
    return PortSpec(
        number=number,
        interface=addressing.interface_name(node, number),
        peer=peer,
        peer_interface=addressing.interface_name(peer.node, peer.port),
        peer_is_host=peer_is_host,
        link=link,
    )


def _host(design: Design, index: int) -> HostSpec:
    name = addressing.host_name(index)
    leaf, place = divmod(index, design.hosts_per_leaf)
    return HostSpec(
        name=name,
        index=index,
        nics=tuple(_nic(design.host_link, name, plane, leaf, place) for plane in range(design.planes)),
    )


def _nic(link: LinkSpec, host: str, plane: int, leaf: int, place: int) -> NicSpec:
    return NicSpec(
        number=plane,
        plane=plane,
        interface=addressing.interface_name(host, plane),
        mac=addressing.host_mac(plane, leaf, place),
        ipv4=IPv4Interface((addressing.host_ipv4(plane, leaf, place), addressing.HOST_IPV4_PREFIX_LENGTH)),
        ipv6=IPv6Interface((addressing.host_ipv6(plane, leaf, place), addressing.HOST_IPV6_PREFIX_LENGTH)),
        gateway_ipv4=addressing.leaf_ipv4(plane, leaf),
        gateway_ipv6=addressing.leaf_ipv6(plane, leaf),
        gateway_mac=addressing.leaf_mac(plane, leaf),
        switch=addressing.leaf_name(plane, leaf),
        switch_port=place + 1,
        link=link,
    )


def _links(switches: Sequence[SwitchSpec]) -> list[FabricLink]:
    # Between switches of a tier, the first in order stands for the one nearer to the hosts.
    places = {switch.name: (switch.tier, number) for number, switch in enumerate(switches)}
    links = []
    for switch in switches:
        for port in switch.ports:
            here = Endpoint(switch.name, port.number)
            if port.peer_is_host:
                links.append(FabricLink(port.peer, here, port.link))
            elif places[port.peer.node] > places[switch.name]:
                links.append(FabricLink(here, port.peer, port.link))
    return links
