"""Builder of leaf/spine fabrics: every plane a two-tier Clos of its own, a NIC of every host in each."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from ipaddress import IPv4Interface, IPv6Interface

from topologies import addressing
from topologies.errors import TopologyError, require_range
from topologies.fabric import (
    Endpoint,
    FabricLink,
    FabricSpec,
    HostSpec,
    LinkSpec,
    NicSpec,
    PortSpec,
    SwitchSpec,
)

KIND = "leaf_spine"
_MAX_RATE_BPS = 10**13
_MAX_DELAY_PS = 10**13
_MIN_QUEUE_CAPACITY_BYTES = 1518
_MAX_QUEUE_CAPACITY_BYTES = 2**40


@dataclass(frozen=True)
class _Parameters:
    """Validated parameters; the fabric rate is resolved, so that equal fabrics have equal parameters."""

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    host_rate_bps: int
    fabric_rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int

    @property
    def host_link(self) -> LinkSpec:
        return LinkSpec(self.host_rate_bps, self.delay_ps, self.queue_capacity_bytes)

    @property
    def fabric_link(self) -> LinkSpec:
        return LinkSpec(self.fabric_rate_bps, self.delay_ps, self.queue_capacity_bytes)


def leaf_spine(
    planes: int = 2,
    leaves: int = 4,
    spines: int = 2,
    hosts_per_leaf: int = 2,
    host_rate_bps: float = 10e9,
    fabric_rate_bps: float | None = None,
    oversubscription: float | None = None,
    delay_ps: int = 1_000_000,
    queue_capacity_bytes: int = 512 * 1024,
) -> FabricSpec:
    """Describe `planes` leaf/spine planes that share their hosts.

    Args:
        planes: independent planes; a host has one NIC in each.
        leaves: leaves per plane; leaf l of every plane has the same hosts.
        spines: spines per plane, each linked once to every leaf; 0 is valid with a single leaf.
        hosts_per_leaf: hosts on each leaf; the fabric has leaves x hosts_per_leaf of them.
        host_rate_bps: rate of the links between hosts and leaves.
        fabric_rate_bps: rate of the links between leaves and spines; the hosts' rate by default.
        oversubscription: instead of `fabric_rate_bps`: a leaf's host bandwidth over its uplink bandwidth.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port.

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    parameters = _validate(
        planes, leaves, spines, hosts_per_leaf, host_rate_bps, fabric_rate_bps, oversubscription, delay_ps,
        queue_capacity_bytes,
    )  # fmt: skip
    switches = tuple(
        switch
        for plane in range(parameters.planes)
        for switch in (
            *(_leaf(parameters, plane, leaf) for leaf in range(parameters.leaves)),
            *(_spine(parameters, plane, spine) for spine in range(parameters.spines)),
        )
    )
    hosts = tuple(_host(parameters, index) for index in range(parameters.leaves * parameters.hosts_per_leaf))
    return FabricSpec(
        planes=parameters.planes,
        hosts=hosts,
        switches=switches,
        links=tuple(_links(switches)),
        parameters={"kind": KIND, **asdict(parameters)},
    )


def _validate(
    planes: int,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    host_rate_bps: float,
    fabric_rate_bps: float | None,
    oversubscription: float | None,
    delay_ps: int,
    queue_capacity_bytes: int,
) -> _Parameters:
    planes = require_range("planes", planes, 1, addressing.MAX_PLANES)
    leaves = require_range("leaves", leaves, 1, addressing.MAX_LEAVES)
    several = "several leaves need a spine between them" if leaves > 1 else ""
    spines = require_range("spines", spines, 1 if leaves > 1 else 0, addressing.MAX_SPINES, several)
    hosts_per_leaf = require_range("hosts_per_leaf", hosts_per_leaf, 1, addressing.MAX_HOSTS_PER_LEAF)
    host_rate = _rate("host_rate_bps", host_rate_bps)
    return _Parameters(
        planes=planes,
        leaves=leaves,
        spines=spines,
        hosts_per_leaf=hosts_per_leaf,
        host_rate_bps=host_rate,
        fabric_rate_bps=_fabric_rate(host_rate, hosts_per_leaf, spines, fabric_rate_bps, oversubscription),
        delay_ps=require_range("delay_ps", delay_ps, 0, _MAX_DELAY_PS),
        queue_capacity_bytes=require_range(
            "queue_capacity_bytes", queue_capacity_bytes, _MIN_QUEUE_CAPACITY_BYTES, _MAX_QUEUE_CAPACITY_BYTES
        ),
    )


def _rate(name: str, rate_bps: float) -> int:
    return require_range(name, rate_bps, 1, _MAX_RATE_BPS)


def _fabric_rate(
    host_rate_bps: int,
    hosts_per_leaf: int,
    spines: int,
    fabric_rate_bps: float | None,
    oversubscription: float | None,
) -> int:
    if oversubscription is None:
        return host_rate_bps if fabric_rate_bps is None else _rate("fabric_rate_bps", fabric_rate_bps)
    if fabric_rate_bps is not None:
        raise TopologyError(
            f"fabric_rate_bps={fabric_rate_bps} and oversubscription={oversubscription} exclude each other"
        )
    if not (math.isfinite(oversubscription) and oversubscription > 0):
        raise TopologyError(f"oversubscription={oversubscription} is out of range (valid: above 0)")
    if spines == 0:
        raise TopologyError(f"oversubscription={oversubscription} means nothing without spines (spines=0)")
    return _rate(
        "fabric_rate_bps", float(round(hosts_per_leaf * host_rate_bps / (spines * oversubscription)))
    )


def _device_id(parameters: _Parameters, plane: int, place: int) -> int:
    """Devices count from 1, plane by plane, leaves before spines."""
    return 1 + plane * (parameters.leaves + parameters.spines) + place


def _leaf(parameters: _Parameters, plane: int, leaf: int) -> SwitchSpec:
    name = addressing.leaf_name(plane, leaf)
    host_ports = (
        _port(
            name,
            host + 1,
            addressing.host_name(leaf * parameters.hosts_per_leaf + host),
            plane,
            parameters.host_link,
            True,
        )
        for host in range(parameters.hosts_per_leaf)
    )
    spine_ports = (
        _port(
            name, parameters.hosts_per_leaf + spine + 1, addressing.spine_name(plane, spine), leaf + 1,
            parameters.fabric_link, False,
        )
        for spine in range(parameters.spines)
    )  # fmt: skip
    return SwitchSpec(
        name=name,
        device_id=_device_id(parameters, plane, leaf),
        plane=plane,
        index=leaf,
        role="leaf",
        address=addressing.leaf_ipv4(plane, leaf),
        ipv6=addressing.leaf_ipv6(plane, leaf),
        mac=addressing.leaf_mac(plane, leaf),
        ports=(*host_ports, *spine_ports),
    )


def _spine(parameters: _Parameters, plane: int, spine: int) -> SwitchSpec:
    name = addressing.spine_name(plane, spine)
    peer_port = parameters.hosts_per_leaf + spine + 1
    return SwitchSpec(
        name=name,
        device_id=_device_id(parameters, plane, parameters.leaves + spine),
        plane=plane,
        index=spine,
        role="spine",
        address=addressing.spine_ipv4(plane, spine),
        ipv6=addressing.spine_ipv6(plane, spine),
        mac=addressing.spine_mac(plane, spine),
        ports=tuple(
            _port(name, leaf + 1, addressing.leaf_name(plane, leaf), peer_port, parameters.fabric_link, False)
            for leaf in range(parameters.leaves)
        ),
    )


def _port(node: str, number: int, peer: str, peer_port: int, link: LinkSpec, peer_is_host: bool) -> PortSpec:
    return PortSpec(
        number=number,
        interface=addressing.interface_name(node, number),
        peer=Endpoint(peer, peer_port),
        peer_interface=addressing.interface_name(peer, peer_port),
        peer_is_host=peer_is_host,
        link=link,
    )


def _host(parameters: _Parameters, index: int) -> HostSpec:
    name = addressing.host_name(index)
    leaf, place = divmod(index, parameters.hosts_per_leaf)
    return HostSpec(
        name=name,
        index=index,
        nics=tuple(_nic(parameters, name, plane, leaf, place) for plane in range(parameters.planes)),
    )


def _nic(parameters: _Parameters, host: str, plane: int, leaf: int, place: int) -> NicSpec:
    return NicSpec(
        plane=plane,
        interface=addressing.interface_name(host, plane),
        mac=addressing.host_mac(plane, leaf, place),
        ipv4=IPv4Interface((addressing.host_ipv4(plane, leaf, place), addressing.HOST_IPV4_PREFIX_LENGTH)),
        ipv6=IPv6Interface((addressing.host_ipv6(plane, leaf, place), addressing.HOST_IPV6_PREFIX_LENGTH)),
        gateway_ipv4=addressing.leaf_ipv4(plane, leaf),
        gateway_ipv6=addressing.leaf_ipv6(plane, leaf),
        gateway_mac=addressing.leaf_mac(plane, leaf),
        leaf=addressing.leaf_name(plane, leaf),
        leaf_port=place + 1,
        link=parameters.host_link,
    )


def _links(switches: tuple[SwitchSpec, ...]) -> list[FabricLink]:
    links = []
    for switch in switches:
        if switch.role != "leaf":
            continue
        for port in switch.ports:
            here = Endpoint(switch.name, port.number)
            a, b = (port.peer, here) if port.peer_is_host else (here, port.peer)
            links.append(FabricLink(a, b, port.link))
    return links
