"""Parts of fabrics: links and their ends, switches and their ports, hosts and their NICs.

Ports of a switch count from 1; a host's port number is its NIC's number. Times are in picoseconds, rates in bits per
second, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Literal, get_args

from weft.topologies.addressing import IpVersion
from weft.topologies.errors import TopologyError


@dataclass(frozen=True)
class LinkSpec:
    """A link's figures, equal in both directions; memory belongs to the transmitting port.

    `queue_capacity_bytes` is the port's dedicated memory. `shared_memory_bytes` is its contribution if the switch's
    ports share their memory; None means the same number.
    """

    rate_bps: int
    delay_ps: int
    queue_capacity_bytes: int
    shared_memory_bytes: int | None = None

    @property
    def memory_to_share_bytes(self) -> int:
        """Bytes that the port contributes to memory shared by a switch's ports."""
        return self.queue_capacity_bytes if self.shared_memory_bytes is None else self.shared_memory_bytes


@dataclass(frozen=True, order=True)
class Endpoint:
    """One end of a link: a port of a node (a switch's port number, or a host's NIC number)."""

    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


LinkEnds = frozenset[Endpoint]
"""A link's two ends, which identify it even among parallel links."""


@dataclass(frozen=True)
class FabricLink:
    """A link of the fabric, listed once; `a` is the end nearer to the hosts or, within a tier, the first in order."""

    a: Endpoint
    b: Endpoint
    link: LinkSpec

    @property
    def ends(self) -> LinkEnds:
        """Both ends."""
        return frozenset((self.a, self.b))

    @property
    def directions(self) -> tuple[tuple[Endpoint, Endpoint], ...]:
        """Sender and receiver of each direction."""
        return (self.a, self.b), (self.b, self.a)

    def __str__(self) -> str:
        return f"{self.a}-{self.b}"


@dataclass(frozen=True)
class PortSpec:
    """A port of a switch: its number, its interface in the root namespace, and its peer.

    `circuit` is the port of a circuit switch (`weft.topologies.circuits`) that it is cabled to, or None. While no
    circuit joins it to another port, `circuit` is also its peer and the port is dark. A port that
    `leads_to_controller` has no link of the fabric: a controller sniffs and sends at `peer_interface`, also in the
    root namespace.
    """

    number: int
    interface: str
    peer: Endpoint
    peer_interface: str
    peer_is_host: bool
    link: LinkSpec
    circuit: Endpoint | None = None
    leads_to_controller: bool = False

    @property
    def is_dark(self) -> bool:
        """Whether the port has no link of the fabric: no circuit joins it, or it leads to a controller."""
        return self.leads_to_controller or (self.circuit is not None and self.peer == self.circuit)

    @property
    def is_cabled(self) -> bool:
        """Whether the port leads to a node of the fabric or a controller."""
        return self.leads_to_controller or not self.is_dark


@dataclass(frozen=True)
class SwitchSpec:
    """A switch.

    Attributes:
        name: unique in the fabric.
        device_id: P4Runtime device id, unique in the fabric.
        plane: the network it belongs to.
        index: counts within its plane and role.
        role: named by its kind of topology: leaf, spine, core, router.
        tier: distance from the hosts, 0 next to them; aggregation trees go up the tiers.
        coordinates: its place in its plane, as its kind of topology counts: (pod, leaf), (group, router), (x, y, z).
        group: the pod, group or block it belongs to; None if there are none.
        networks: with hierarchical addresses, the prefixes of the switch and its hosts.
        address: its IPv4 address, to which contributions to aggregation are sent.
        ipv6: its IPv6 address, used in the same way.
        mac: shared by all its ports.
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
        """Return the switch's address of this IP version, to which contributions are sent."""
        return self.ipv6 if ip_version == 6 else self.address

    def port(self, number: int) -> PortSpec:
        """Return the port with this number; TopologyError names the valid ones."""
        if not 1 <= number <= len(self.ports):
            raise TopologyError(f"switch {self.name} has no port {number}", valid=f"1 to {len(self.ports)}")
        return self.ports[number - 1]

    @cached_property
    def host_ports(self) -> tuple[PortSpec, ...]:
        """Ports with a host at the other end."""
        return tuple(port for port in self.ports if port.peer_is_host)

    @cached_property
    def fabric_ports(self) -> tuple[PortSpec, ...]:
        """Ports with a switch at the other end, except dark ports."""
        return tuple(port for port in self.ports if not port.peer_is_host and not port.is_dark)


@dataclass(frozen=True)
class NicSpec:
    """A host's NIC in a plane, attached to port `switch_port` of switch `switch`; `number` counts within the host.

    `neighbours` are static ARP entries: pairs of IPv4 address and MAC.
    """

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
    neighbours: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class HostSpec:
    """A host; `index` counts in the whole fabric. `nics[n]` is NIC number n, in plane n if each plane has one NIC."""

    name: str
    index: int
    nics: tuple[NicSpec, ...]

    def nic(self, number: int) -> NicSpec:
        """Return the NIC of this number; TopologyError names the valid ones."""
        if not 0 <= number < len(self.nics):
            raise TopologyError(f"host {self.name} has no NIC {number}", valid=f"0 to {len(self.nics) - 1}")
        return self.nics[number]


RelayMode = Literal["unreachable", "rails", "off"]
"""Which messages the ranks of a host send on for each other (`FabricSpec.relay`)."""
RELAY_MODES: tuple[RelayMode, ...] = get_args(RelayMode)


@dataclass(frozen=True)
class ScaleUpSpec:
    """Hosts with several ranks and the links inside them; see `weft.topologies.scale_up`.

    The numbers of a host's ranks differ by `rank_stride`, starting within its block. `reductions`: whether the switch
    between them reduces and multicasts.
    """

    ranks_per_host: int
    rank_stride: int
    rate_bps: int
    latency_ps: int
    relay: RelayMode = "unreachable"
    reductions: bool = False

    def share_a_host(self, rank: int, other: int) -> bool:
        """Return whether two ranks share a host."""
        size, stride = self.ranks_per_host, self.rank_stride
        return (rank // (size * stride), rank % stride) == (other // (size * stride), other % stride)

    def counterpart(self, rank: int, other: int) -> int:
        """Return the rank on one rank's host with the number there that another has on its own host."""
        size, stride = self.ranks_per_host, self.rank_stride
        block, within = divmod(rank, size * stride)
        return block * size * stride + other % (size * stride) // stride * stride + within % stride

    def hosts(self, rank_count: int) -> Iterator[tuple[int, ...]]:
        """Yield the ranks of every host."""
        size, stride = self.ranks_per_host, self.rank_stride
        for block in range(0, rank_count, size * stride):
            for first in range(block, block + stride):
                yield tuple(range(first, first + size * stride, stride))
