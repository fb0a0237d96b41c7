"""Frozen description of a fabric: hosts, switches, ports, links.

A fabric is a graph: hosts may be on any switch, and any two nodes may have one or more links. Nothing here depends on
Mininet, P4Runtime or packets.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, TypeVar

from weft.topologies.circuits import CircuitPlan, links_of, rejoined
from weft.topologies.distances import Distances
from weft.topologies.errors import TopologyError
from weft.topologies.parts import (
    Endpoint,
    FabricLink,
    HostSpec,
    LinkEnds,
    LinkSpec,
    NicSpec,
    PortSpec,
    ScaleUpSpec,
    SwitchSpec,
)

if TYPE_CHECKING:
    from weft.topologies.paths import Path

__all__ = [
    "Endpoint",
    "FabricLink",
    "FabricSpec",
    "HostSpec",
    "LinkEnds",
    "LinkSpec",
    "NicSpec",
    "PortSpec",
    "ScaleUpSpec",
    "SwitchSpec",
    "split_end",
]

DEFAULT_TREE_CHILDREN = 32
"""Most children of a node of an aggregation tree, unless a kind of topology has wider switches."""

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class FabricSpec:
    """A whole fabric.

    NICs with the same number are in the same plane on all hosts and reach each other. `parameters` are the builder's
    arguments as plain JSON values, with its name under "kind": `weft.topologies.from_parameters(fabric.parameters)`
    builds an equal fabric. `plane_networks[p]` hold all addresses of plane p. With `circuits`, ports and links are as
    in their present configuration. A node of an aggregation tree has up to `tree_children` children: for so many the
    switches' program is compiled. `is_scale_up` if the whole fabric is a scale-up domain. `storage_plane` is the plane
    of the storage network, the last one, if there is one; with `storage_failover` other planes carry its traffic while
    it is lost.
    """

    planes: int
    hosts: tuple[HostSpec, ...]
    switches: tuple[SwitchSpec, ...]
    links: tuple[FabricLink, ...]
    parameters: Mapping[str, object]
    plane_networks: tuple[tuple[IPv4Network, IPv6Network], ...]
    scale_up: ScaleUpSpec | None = None
    spares: int = 0
    circuits: CircuitPlan | None = None
    tree_children: int = DEFAULT_TREE_CHILDREN
    is_scale_up: bool = False
    storage_plane: int | None = None
    storage_failover: bool = False

    def in_configuration(self, name: str) -> FabricSpec:
        """Return the fabric with its circuits in another configuration: links change, ports and addresses stay.

        Raises:
            TopologyError: there are no circuits, or the name is unknown; the message lists the valid names.

        """
        if self.circuits is None:
            raise TopologyError(f"the fabric has no circuits, so there is no configuration {name!r}")
        switches = rejoined(self.switches, self.circuits, self.circuits.configuration(name))
        return replace(
            self,
            switches=switches,
            links=links_of(switches),
            circuits=replace(self.circuits, present=name),
            parameters={**self.parameters, "configuration": name},
        )

    @property
    def configurations(self) -> tuple[FabricSpec, ...]:
        """The fabric in each configuration of its circuits, the present one first; without circuits, only itself."""
        if self.circuits is None:
            return (self,)
        others = (name for name in self.circuits.names if name != self.circuits.present)
        return (self, *(self.in_configuration(name) for name in others))

    def host(self, name: str) -> HostSpec:
        """Return the host of this name; TopologyError names valid choices."""
        return _lookup("host", self._host_by_name, name)

    def switch(self, name: str) -> SwitchSpec:
        """Return the switch of this name; TopologyError names valid choices."""
        return _lookup("switch", self._switch_by_name, name)

    def device(self, device_id: int) -> SwitchSpec:
        """Return the switch with this P4Runtime device id."""
        return _lookup("device id", self._switch_by_device_id, device_id)

    def gateways(self, nic: NicSpec) -> dict[IPv4Network | IPv6Network, IPv4Address | IPv6Address]:
        """Return a NIC's gateway to each prefix of its plane, omitting prefixes that are entirely on its link."""
        ipv4, ipv6 = self.plane_networks[nic.plane]
        found: dict[IPv4Network | IPv6Network, IPv4Address | IPv6Address] = {}
        if not ipv4.subnet_of(nic.ipv4.network):
            found[ipv4] = nic.gateway_ipv4
        if not ipv6.subnet_of(nic.ipv6.network):
            found[ipv6] = nic.gateway_ipv6
        return found

    @property
    def rank_count(self) -> int:
        """Number of ranks in a collective: all endpoints except the spares, which come last."""
        return len(self.hosts) - self.spares

    @property
    def ranks_per_host(self) -> int:
        """Ranks that share a host; 1 without scale-up links."""
        return 1 if self.scale_up is None else self.scale_up.ranks_per_host

    @property
    def host_reductions(self) -> bool:
        """Whether the switches between the ranks of hosts reduce."""
        return self.scale_up is not None and self.scale_up.reductions

    def host_numbers(self) -> tuple[int, ...]:
        """Return the number of each rank's host: with scale-up links several ranks share one."""
        hosts = list(range(self.rank_count))
        if self.scale_up is not None:
            for number, ranks in enumerate(self.scale_up.hosts(self.rank_count)):
                for rank in ranks:
                    hosts[rank] = number
        return tuple(hosts)

    @cached_property
    def links_between_switches(self) -> tuple[FabricLink, ...]:
        """Return the links without hosts, in the order of `links`."""
        switches = {switch.name for switch in self.switches}
        return tuple(link for link in self.links if link.a.node in switches and link.b.node in switches)

    @cached_property
    def training_links(self) -> tuple[FabricLink, ...]:
        """Return the links between switches of the planes that all traffic may use."""
        switches = {switch.name for plane in self.training_planes for switch in self.switches_of_plane(plane)}
        return tuple(link for link in self.links_between_switches if link.a.node in switches)

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

    @property
    def training_planes(self) -> tuple[int, ...]:
        """The planes that all traffic may use; a storage network is for storage alone."""
        return tuple(plane for plane in range(self.planes) if plane != self.storage_plane)

    @property
    def storage_planes(self) -> tuple[int, ...]:
        """The planes of storage traffic: the storage network or, without one, those of all traffic."""
        return self.training_planes if self.storage_plane is None else (self.storage_plane,)

    def plane_name(self, plane: int) -> str:
        """Return how drawings call a plane."""
        return f"plane {plane}, storage" if plane == self.storage_plane else f"plane {plane}"

    @property
    def training_nics(self) -> int:
        """How many NICs every host has in planes that all traffic may use; they are its first ones."""
        return sum(nic.plane != self.storage_plane for nic in self.hosts[0].nics)

    def nic_rates_bps(self, planes: Container[int]) -> tuple[int, ...]:
        """Return the rate of each of a host's NICs, 0 for those in other planes than the given ones."""
        return tuple(nic.link.rate_bps if nic.plane in planes else 0 for nic in self.hosts[0].nics)

    @cached_property
    def nics_of_planes(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of every host's NICs in each plane."""
        found: dict[int, list[int]] = {}
        for nic in self.hosts[0].nics:
            found.setdefault(nic.plane, []).append(nic.number)
        return tuple(tuple(numbers) for numbers in found.values())

    @cached_property
    def first_nics(self) -> tuple[int, ...]:
        """Number of the first NIC of every host in each plane."""
        return tuple(numbers[0] for numbers in self.nics_of_planes)

    @cached_property
    def subnets_of_several_switches(self) -> frozenset[IPv4Network | IPv6Network]:
        """Subnets shared by NICs at different switches."""
        switch_of: dict[IPv4Network | IPv6Network, str] = {}
        return frozenset(
            network
            for host in self.hosts
            for nic in host.nics
            for network in (nic.ipv4.network, nic.ipv6.network)
            if switch_of.setdefault(network, nic.switch) != nic.switch
        )

    @cached_property
    def fastest_bps(self) -> int:
        """Rate of the fastest link at a switch; 0 if there is none."""
        return max((port.link.rate_bps for switch in self.switches for port in switch.ports), default=0)

    @cached_property
    def joins_all_hosts(self) -> bool:
        """Whether every host can reach all others in every plane."""
        return all(
            self.hops_between(edges[0].name, other.name) is not None
            for plane in range(self.planes)
            if (edges := self.edge_switches(plane))
            for other in edges[1:]
        )

    def links_between(self, a: str, b: str) -> tuple[FabricLink, ...]:
        """Return the links between two nodes, given in either order; empty if they are not adjacent."""
        return self._links_by_nodes.get(frozenset((a, b)), ())

    def link_between(self, a: str, b: str) -> FabricLink:
        """Return the only link between two nodes or ports (`p0l0`, `p0l0:3`), given in either order.

        Raises:
            TopologyError: there is none, or there are several; the message lists the valid ones.

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
            problem = "names several links" if named else "names no link"
            raise TopologyError(f"{a}<->{b} {problem}", valid=(f"{link.a}<->{link.b}" for link in between))
        return _lookup("link", self._links_by_nodes, frozenset((a, b)), shown=f"{a}-{b}")[0]

    def link_at(self, end: Endpoint) -> FabricLink:
        """Return a port's link; TopologyError names valid ports."""
        return _lookup("port", self._link_by_end, end, shown=str(end))

    def link_name(self, link: FabricLink) -> str:
        """Return a link's name: `p0l0<->p0s1`, or `p0l0:3<->p0s1:1` if it has parallel links."""
        if len(self.links_between(link.a.node, link.b.node)) > 1:
            return f"{link.a}<->{link.b}"
        return f"{link.a.node}<->{link.b.node}"

    def direction_name(self, sender: Endpoint, receiver: Endpoint) -> str:
        """Return the name of a link's direction: `p0l0->p0s1`, or `p0l0:3->p0s1:1` if it has parallel links."""
        if len(self.links_between(sender.node, receiver.node)) > 1:
            return f"{sender}->{receiver}"
        return f"{sender.node}->{receiver.node}"

    @property
    def has_parallel_links(self) -> bool:
        """Whether any two nodes are joined by several links."""
        return len(self._links_by_nodes) < len(self.links)

    def hops_between(self, first: str, second: str) -> int | None:
        """Return the hops between two switches of a plane; None if there is no path."""
        return self._distances_by_plane[self.switch(first).plane].between(first, second)

    @cached_property
    def networks(self) -> tuple[FabricSpec, ...]:
        """The fabric and, if it has a storage network, the same with this network's NICs as its hosts' only ones.

        Paths and round trips of the second are the storage network's.
        """
        if self.storage_plane is None:
            return (self,)
        hosts = tuple(
            replace(host, nics=tuple(nic for nic in host.nics if nic.plane == self.storage_plane))
            for host in self.hosts
        )
        return (self, replace(self, hosts=hosts, storage_plane=None))

    @cached_property
    def representative_paths(self) -> list[Path]:
        """See `weft.topologies.paths.representative_paths`."""
        from weft.topologies.paths import representative_paths

        return representative_paths(self)

    def distances(self, plane: int) -> Distances[str]:
        """Return the hops between the switches of a plane, in order of their device ids."""
        return self._distances_by_plane[plane]

    def require_path(self, source: int, destination: int, nic: int) -> None:
        """Check that two hosts, given by index, have a path between their NICs `nic`, or share scale-up links.

        Raises:
            TopologyError: they have neither.

        """
        if self.joins_all_hosts or (self.scale_up and self.scale_up.share_a_host(source, destination)):
            return
        if not self._has_path(source, destination, nic):
            raise self._no_path(source, destination, nic)

    def relay(self, source: int, destination: int, nic: int) -> int | None:
        """Return the rank of the source's host that takes its messages first; None if they leave by its own NIC.

        It is the one with the destination's number, whose NICs are on that rank's rail, and which sends them on (NCCL's
        PXN), or the destination itself if it is on the host. By `ScaleUpSpec.relay` this is for messages without a path
        of their own, or all that change rails.

        Raises:
            TopologyError: there is neither a path nor a relay.

        """
        scale_up = self.scale_up
        if scale_up is None or self.hosts[source].nic(nic).plane == self.storage_plane:
            self.require_path(source, destination, nic)
            return None
        is_direct = self.joins_all_hosts or self._has_path(source, destination, nic)
        relay = scale_up.counterpart(source, destination)
        if scale_up.relay == "off" or relay == source or (is_direct and scale_up.relay == "unreachable"):
            if not is_direct:
                raise self._no_path(source, destination, nic)
            return None
        if relay != destination:
            self.require_path(relay, destination, nic)
        return relay

    def _no_path(self, source: int, destination: int, nic: int) -> TopologyError:
        first, last = (self.hosts[index].nic(nic) for index in (source, destination))
        return TopologyError(
            f"{self.hosts[source].name} and {self.hosts[destination].name} have no path in plane {first.plane}: "
            f"no links lead from {first.switch} to {last.switch}"
        )

    def _has_path(self, source: int, destination: int, nic: int) -> bool:
        first, last = (self.hosts[index].nic(nic) for index in (source, destination))
        return self.hops_between(first.switch, last.switch) is not None

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
    """Return the node and the port of a link's end such as `p0l0:3`; the port of `p0l0` is None, any port."""
    node, colon, port = text.partition(":")
    return (node, int(port)) if colon and port.isdecimal() else (text, None)


def _lookup(what: str, items: Mapping[_Key, _Item], key: _Key, shown: object = None) -> _Item:
    try:
        return items[key]
    except KeyError:
        raise TopologyError(f"unknown {what} {shown if shown is not None else key!r}", valid=_choices(items)) from None


def _choices(keys: Iterable[object], most: int = 8) -> str:
    names = ["-".join(sorted(key)) if isinstance(key, frozenset) else str(key) for key in keys]
    return ", ".join(names[:most]) + (f", … {names[-1]}" if len(names) > most else "")
