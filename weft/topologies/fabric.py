"""Frozen description of a fabric: hosts, switches, ports, links.

Nothing here knows Mininet, P4Runtime or packets. Ports of a switch count from 1; a host's port number is
its NIC's index, which is the plane it is in. Times in picoseconds, rates in bits per second, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Literal, TypeVar

from weft.topologies.addressing import IpVersion
from weft.topologies.distances import Distances
from weft.topologies.errors import TopologyError

Role = Literal["leaf", "spine", "core"]
TIERS: Mapping[Role, int] = {"leaf": 0, "spine": 1, "core": 2}
"""How far from the hosts a switch of a role is."""
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
    """One end of a link: a port of a node (a switch's port number, or a host's NIC index)."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


@dataclass(frozen=True)
class FabricLink:
    """A link of the fabric, listed once; `a` is the end nearer to the hosts, within a tier the first in order."""

    a: Endpoint
    b: Endpoint
    link: LinkSpec

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
    """A switch; `index` counts within its plane and role, `address` and `ipv6` are also its aggregation addresses."""

    name: str
    device_id: int
    plane: int
    index: int
    role: Role
    address: IPv4Address
    ipv6: IPv6Address
    mac: str
    ports: tuple[PortSpec, ...]

    @property
    def tier(self) -> int:
        """How far from the hosts the switch is; most links lead from one tier to another."""
        return TIERS[self.role]

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
    """A host's NIC: one per plane, attached to port `leaf_port` of switch `leaf`."""

    plane: int
    interface: str
    mac: str
    ipv4: IPv4Interface
    ipv6: IPv6Interface
    gateway_ipv4: IPv4Address
    gateway_ipv6: IPv6Address
    gateway_mac: str
    leaf: str
    leaf_port: int
    link: LinkSpec


@dataclass(frozen=True)
class HostSpec:
    """A host; `index` counts in the whole fabric, `nics[p]` is its NIC in plane p."""

    name: str
    index: int
    nics: tuple[NicSpec, ...]

    def nic(self, plane: int) -> NicSpec:
        """Return the NIC in this plane; TopologyError names the valid planes."""
        if not 0 <= plane < len(self.nics):
            raise TopologyError(
                f"host {self.name} has no NIC in plane {plane} (valid: 0 to {len(self.nics) - 1})"
            )
        return self.nics[plane]


@dataclass(frozen=True)
class ScaleUpSpec:
    """Hosts of several ranks and the links inside them; see `weft.topologies.scale_up`.

    A host's ranks are `rank_stride` apart among all ranks: the first of its block, the one a stride further on, …
    """

    ranks_per_host: int
    rank_stride: int
    rate_bps: int
    latency_ps: int

    def hosts(self, rank_count: int) -> Iterator[tuple[int, ...]]:
        """Return the ranks of every host."""
        size, stride = self.ranks_per_host, self.rank_stride
        for block in range(0, rank_count, size * stride):
            for first in range(block, block + stride):
                yield tuple(range(first, first + size * stride, stride))


@dataclass(frozen=True)
class FabricSpec:
    """A whole fabric.

    `parameters` is what the builder was given, plain JSON values with its name under "kind":
    `weft.topologies.from_parameters(fabric.parameters)` builds an equal fabric.
    """

    planes: int
    hosts: tuple[HostSpec, ...]
    switches: tuple[SwitchSpec, ...]
    links: tuple[FabricLink, ...]
    parameters: Mapping[str, object]
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
        """Switches of one plane, leaves first."""
        return _lookup("plane", self._switches_by_plane, plane)

    def leaves(self, plane: int) -> tuple[SwitchSpec, ...]:
        """Leaves of one plane in order of their index."""
        return tuple(switch for switch in self.switches_of_plane(plane) if switch.role == "leaf")

    def spines(self, plane: int) -> tuple[SwitchSpec, ...]:
        """Spines of one plane in order of their index."""
        return tuple(switch for switch in self.switches_of_plane(plane) if switch.role == "spine")

    def cores(self, plane: int) -> tuple[SwitchSpec, ...]:
        """Cores of one plane in order of their index; none in fabrics of two tiers."""
        return tuple(switch for switch in self.switches_of_plane(plane) if switch.role == "core")

    def leaf_of(self, host: str, plane: int) -> SwitchSpec:
        """Return the leaf that a host is attached to in a plane."""
        return self.switch(self.host(host).nic(plane).leaf)

    def link_between(self, a: str, b: str) -> FabricLink:
        """Return the link between two adjacent nodes, in either order."""
        return _lookup("link", self._link_by_nodes, frozenset((a, b)), shown=f"{a}-{b}")

    def hops_between(self, first: str, second: str) -> int | None:
        """Return how many links are between two switches of a plane; None if no way leads from one to the other."""
        return self._distances_by_plane[self.switch(first).plane].between(first, second)

    @cached_property
    def _distances_by_plane(self) -> tuple[Distances[str], ...]:
        return tuple(
            Distances(
                {
                    switch.name: [port.peer.node for port in switch.fabric_ports]
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
    def _link_by_nodes(self) -> dict[frozenset[str], FabricLink]:
        return {frozenset((link.a.node, link.b.node)): link for link in self.links}


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
