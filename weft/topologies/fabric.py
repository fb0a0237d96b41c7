"""Frozen description of a fabric: hosts, switches, ports, links.

A fabric is a graph: hosts may be on any switch, links may join any two nodes, several the same two. Nothing here knows
Mininet, P4Runtime or packets. Ports of a switch count from 1; a host's port number is its NIC's number. Times in
picoseconds, rates in bits per second, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import TypeVar

from weft.topologies.addressing import IpVersion
from weft.topologies.distances import Distances
from weft.topologies.errors import TopologyError

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class LinkSpec:
    """What a link is like, the same in both directions; the queue is the transmitting port's."""

    rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int


@dataclass(frozen=True, order=True)
class Endpoint:
    """One end of a link: a port of a node (a switch's port number, or a host's NIC number)."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


LinkEnds = frozenset[Endpoint]
"""What tells a link from all others, parallel ones included: its two ends."""


@dataclass(frozen=True)
class FabricLink:
    """A link of the fabric, listed once; `a` is the end nearer to the hosts, within a tier the first in order."""

    a: Endpoint
    b: Endpoint
    link: LinkSpec

    @property
    def ends(self) -> LinkEnds:
        """Both ends."""
        return frozenset((self.a, self.b))

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class PortSpec:
    """A port of a switch: its number, its interface in the root namespace, who is at the other end."""

    number: int
    interface: str
    peer: Endpoint
    peer_interface: str
    peer_is_host: bool
    link: LinkSpec


@dataclass(frozen=True)
class SwitchSpec:
    """A switch.

    Attributes:
        name: unique in the fabric.
        device_id: P4Runtime's, unique in the fabric.
        plane: the network it belongs to.
        index: counts within its plane and role.
        role: a word of its kind of topology: leaf, spine, core, router.
        tier: how far from the hosts it is, 0 where hosts are; aggregation trees go up the tiers.
        coordinates: its place in its plane as its kind of topology counts: (pod, leaf), (group, router), (x, y, z).
        group: the pod, group or block it belongs to; None where there are none.
        networks: what holds all addresses behind it, its own included, where the addresses of a fabric are a hierarchy.
        address: its own, where contributions to aggregation go, too.
        ipv6: likewise.
        mac: of all its ports.
        ports: numbered from 1.

    """

    name: str
    device_id: int
    plane: int
    index: int
    role: str
    tier: int
    address: IPv4Address
    ipv6: IPv6Address
    mac: str
    ports: tuple[PortSpec, ...]
    coordinates: tuple[int, ...] = ()
    group: int | None = None
    networks: tuple[IPv4Network, IPv6Network] | None = None

    def address_of(self, ip_version: IpVersion) -> IPv4Address | IPv6Address:
        """Return the switch's own address of this IP version: where contributions to it go."""
        return self.ipv6 if ip_version == 6 else self.address

    def port(self, number: int) -> PortSpec:
        """Return the port with this number; TopologyError names the valid ones."""
        if not 1 <= number <= len(self.ports):
            raise TopologyError(f"switch {self.name} has no port {number} (valid: 1 to {len(self.ports)})")
        return self.ports[number - 1]

    @cached_property
    def host_ports(self) -> tuple[PortSpec, ...]:
        """Ports with a host at the other end."""
        return tuple(port for port in self.ports if port.peer_is_host)

    @cached_property
    def fabric_ports(self) -> tuple[PortSpec, ...]:
        """Ports with a switch at the other end."""
        return tuple(port for port in self.ports if not port.peer_is_host)


@dataclass(frozen=True)
class NicSpec:
    """A host's NIC in a plane, attached to port `switch_port` of switch `switch`; `number` counts within the host."""

    number: int
    plane: int
    interface: str
    mac: str
    ipv4: IPv4Interface
    ipv6: IPv6Interface
    gateway_ipv4: IPv4Address
    gateway_ipv6: IPv6Address
    gateway_mac: str
    switch: str
    switch_port: int
    link: LinkSpec


@dataclass(frozen=True)
class HostSpec:
    """A host; `index` counts in the whole fabric, `nics[n]` is NIC number n; of one NIC per plane, that of plane n."""

    name: str
    index: int
    nics: tuple[NicSpec, ...]

    def nic(self, number: int) -> NicSpec:
        """Return the NIC of this number; TopologyError names the valid ones."""
        if not 0 <= number < len(self.nics):
            raise TopologyError(f"host {self.name} has no NIC {number} (valid: 0 to {len(self.nics) - 1})")
        return self.nics[number]


@dataclass(frozen=True)
class ScaleUpSpec:
    """Hosts of several ranks and the links inside them; see `weft.topologies.scale_up`.

    A host's ranks are `rank_stride` apart among all ranks: the first of its block, the one a stride further on, …
    """

    ranks_per_host: int
    rank_stride: int
    rate_bps: int
    latency_ps: int

    def share_a_host(self, rank: int, other: int) -> bool:
        """Return whether two ranks are of the same host."""
        size, stride = self.ranks_per_host, self.rank_stride
        return (rank // (size * stride), rank % stride) == (other // (size * stride), other % stride)

    def hosts(self, rank_count: int) -> Iterator[tuple[int, ...]]:
        """Return the ranks of every host."""
        size, stride = self.ranks_per_host, self.rank_stride
        for block in range(0, rank_count, size * stride):
            for first in range(block, block + stride):
                yield tuple(range(first, first + size * stride, stride))


@dataclass(frozen=True)
class FabricSpec:
    """A whole fabric.

    NICs of the same number are in the same plane on all hosts, so that each reaches those of its number. `parameters`
    is what the builder was given, plain JSON values with its name under "kind":
    `weft.topologies.from_parameters(fabric.parameters)` builds an equal fabric. `plane_networks[p]` hold all addresses
    of plane p.
    """

    planes: int
    hosts: tuple[HostSpec, ...]
    switches: tuple[SwitchSpec, ...]
    links: tuple[FabricLink, ...]
    parameters: Mapping[str, object]
    plane_networks: tuple[tuple[IPv4Network, IPv6Network], ...]
    scale_up: ScaleUpSpec | None = None

    def host(self, name: str) -> HostSpec:
        """Return the host of this name; TopologyError names valid choices."""
        return _lookup("host", self._host_by_name, name)

    def switch(self, name: str) -> SwitchSpec:
        """Return the switch of this name; TopologyError names valid choices."""
        return _lookup("switch", self._switch_by_name, name)

    def device(self, device_id: int) -> SwitchSpec:
        """Return the switch with this P4Runtime device id."""
        return _lookup("device id", self._switch_by_device_id, device_id)

    def switches_of_plane(self, plane: int) -> tuple[SwitchSpec, ...]:
        """Switches of one plane in order of their device ids."""
        return _lookup("plane", self._switches_by_plane, plane)

    def switches_with_role(self, plane: int, role: str) -> tuple[SwitchSpec, ...]:
        """Switches of one plane that have a role, in order of their index."""
        return tuple(switch for switch in self.switches_of_plane(plane) if switch.role == role)

    def edge_switches(self, plane: int) -> tuple[SwitchSpec, ...]:
        """Switches of one plane that have hosts, in order of their device ids."""
        return tuple(switch for switch in self.switches_of_plane(plane) if switch.host_ports)

    def switch_of(self, host: str, nic: int) -> SwitchSpec:
        """Return the switch that a NIC of a host is attached to."""
        return self.switch(self.host(host).nic(nic).switch)

    @property
    def nics_per_host(self) -> int:
        """How many NICs every host has: one in each plane, or a multiple."""
        return len(self.hosts[0].nics)

    @cached_property
    def first_nics(self) -> tuple[int, ...]:
        """Number of the first NIC of every host in each plane."""
        first: dict[int, int] = {}
        for nic in self.hosts[0].nics:
            first.setdefault(nic.plane, nic.number)
        return tuple(first.values())

    def links_between(self, a: str, b: str) -> tuple[FabricLink, ...]:
        """Return the links between two nodes, in either order; none if they are not adjacent."""
        return self._links_by_nodes.get(frozenset((a, b)), ())

    def link_between(self, a: str, b: str) -> FabricLink:
        """Return the one link between two nodes, in either order, or two of their ports: `p0l0`, `p0l0:3`.

        Raises:
            TopologyError: there is none, or there are several; lists the valid ones.

        """
        (node, port), (peer, peer_port) = split_end(a), split_end(b)
        between = self.links_between(node, peer)
        named = [
            link
            for link in between
            if all(
                number in (None, end.port)
                for end in (link.a, link.b)
                for name, number in ((node, port), (peer, peer_port))
                if end.node == name
            )
        ]
        if len(named) == 1:
            return named[0]
        if named or between:
            shown = ", ".join(f"{link.a}<->{link.b}" for link in between)
            problem = "names several links" if named else "names no link"
            raise TopologyError(f"{a}<->{b} {problem} (valid: {shown})")
        return _lookup("link", self._links_by_nodes, frozenset((a, b)), shown=f"{a}-{b}")[0]

    def link_at(self, end: Endpoint) -> FabricLink:
        """Return the link that a port has; TopologyError names valid ports."""
        return _lookup("port", self._link_by_end, end, shown=str(end))

    def link_name(self, link: FabricLink) -> str:
        """Return what people call a link: `p0l0<->p0s1`, or `p0l0:3<->p0s1:1` where it has parallel ones."""
        if len(self.links_between(link.a.node, link.b.node)) > 1:
            return f"{link.a}<->{link.b}"
        return f"{link.a.node}<->{link.b.node}"

    @property
    def has_parallel_links(self) -> bool:
        """Whether any two nodes are joined by several links."""
        return len(self._links_by_nodes) < len(self.links)

    def hops_between(self, first: str, second: str) -> int | None:
        """Return how many links are between two switches of a plane; None if no way leads from one to the other."""
        return self._distances_by_plane[self.switch(first).plane].between(first, second)

    def require_path(self, source: int, destination: int, nic: int) -> None:
        """Check that two hosts, by index, have a path between their NICs of a number, or scale-up links.

        Raises:
            TopologyError: they have none.

        """
        if self._joins_all or (self.scale_up and self.scale_up.share_a_host(source, destination)):
            return
        first, last = (self.hosts[index].nic(nic) for index in (source, destination))
        if self.hops_between(first.switch, last.switch) is None:
            raise TopologyError(
                f"{self.hosts[source].name} and {self.hosts[destination].name} have no path in plane {first.plane}: "
                f"no links lead from {first.switch} to {last.switch}"
            )

    @cached_property
    def _joins_all(self) -> bool:
        """Whether all switches with hosts of each plane reach each other."""
        return all(
            self.hops_between(edges[0].name, other.name) is not None
            for plane in range(self.planes)
            if (edges := self.edge_switches(plane))
            for other in edges[1:]
        )

    @cached_property
    def _distances_by_plane(self) -> tuple[Distances[str], ...]:
        return tuple(
            Distances(
                {
                    switch.name: list(dict.fromkeys(port.peer.node for port in switch.fabric_ports))
                    for switch in self.switches_of_plane(plane)
                }
            )
            for plane in range(self.planes)
        )

    @cached_property
    def _host_by_name(self) -> dict[str, HostSpec]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def _switch_by_name(self) -> dict[str, SwitchSpec]:
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def _switch_by_device_id(self) -> dict[int, SwitchSpec]:
        return {switch.device_id: switch for switch in self.switches}

    @cached_property
    def _switches_by_plane(self) -> dict[int, tuple[SwitchSpec, ...]]:
        planes: dict[int, list[SwitchSpec]] = {plane: [] for plane in range(self.planes)}
        for switch in self.switches:
            planes[switch.plane].append(switch)
        return {plane: tuple(switches) for plane, switches in planes.items()}

    @cached_property
    def _links_by_nodes(self) -> dict[frozenset[str], tuple[FabricLink, ...]]:
        found: dict[frozenset[str], tuple[FabricLink, ...]] = {}
        for link in self.links:
            nodes = frozenset((link.a.node, link.b.node))
            found[nodes] = (*found.get(nodes, ()), link)
        return found

    @cached_property
    def _link_by_end(self) -> dict[Endpoint, FabricLink]:
        return {end: link for link in self.links for end in (link.a, link.b)}


def split_end(text: str) -> tuple[str, int | None]:
    """Return the node and the port that a link's end in words names, `p0l0:3`; None for `p0l0`, any port."""
    node, colon, port = text.partition(":")
    return (node, int(port)) if colon and port.isdecimal() else (text, None)


def _lookup(what: str, items: Mapping[_Key, _Item], key: _Key, shown: object = None) -> _Item:
    try:
        return items[key]
    except KeyError:
        raise TopologyError(
            f"unknown {what} {shown if shown is not None else key!r} (valid: {_choices(items)})"
        ) from None


def _choices(keys: Iterable[object], most: int = 8) -> str:
    names = ["-".join(sorted(key)) if isinstance(key, frozenset) else str(key) for key in keys]
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
