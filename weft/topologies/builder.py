"""Builds fabrics: a kind of topology lists switches, hosts and links; the builder gives them names and addresses.

A kind adds the switches of every plane, then the hosts on them, then the links between switches, and calls `build`.
Names, ports, device ids and addresses (`weft.topologies.address_plan`) follow from the order of these calls:

- a switch's index counts within its plane and role, its device id within the fabric, plane by plane;
- a switch's ports count from 1 as hosts and links are added, so hosts added first get the lowest ports;
- a host's NICs count from 0 in the order listed.

A port may be cabled to a circuit switch (`weft.topologies.circuits`) instead of a link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.topologies import addressing
from weft.topologies.address_plan import AddressPlan, Placed, SwitchAddresses, address_plan
from weft.topologies.circuits import (
    MOST_CONFIGURATIONS,
    CircuitConfiguration,
    CircuitPlan,
    CircuitSwitch,
    links_of,
)
from weft.topologies.errors import TopologyError
from weft.topologies.fabric import (
    DEFAULT_TREE_CHILDREN,
    Endpoint,
    FabricSpec,
    HostSpec,
    LinkSpec,
    NicSpec,
    PortSpec,
    SwitchSpec,
)

MOST_LINKS = 2_000_000
"""Most links of a fabric; the description of so many takes some gigabytes."""
MOST_LINKS_OF_CONFIGURATIONS = 500_000
"""Most links in all configurations of a fabric's circuits together; each configuration is described separately."""
_LETTERS = {"leaf": "l", "spine": "s", "core": "c", "router": "r", "node": "n", "switch": "w"}
_TIERS = {"leaf": 0, "spine": 1, "core": 2}


@dataclass(eq=False)
class NewSwitch:
    """A switch under construction, to which hosts and links are added."""

    plane: int
    role: str
    index: int
    name: str
    tier: int
    coordinates: tuple[int, ...]
    group: int | None
    position: tuple[int, ...]
    address_plane: int
    ports: list[PortSpec] = field(default_factory=list)
    nics: int = 0

    @property
    def placed(self) -> Placed:
        """The facts about the switch that determine its addresses."""
        return Placed(self.address_plane, self.role, self.index, self.position, self.nics)


@dataclass(eq=False)
class NewCircuitSwitch:
    """A circuit switch under construction."""

    plane: int
    name: str
    ports: list[Endpoint] = field(default_factory=list)


@dataclass(frozen=True)
class _NewNic:
    switch: NewSwitch
    number: int
    position: int
    """Position among the NICs attached to the switch, from 0."""
    port: int
    link: LinkSpec


class FabricBuilder:
    """Collects a fabric's switches, hosts and links. See the module.

    `first_nic` is the number of every host's first NIC. With `address_plane`, all addresses are those of this plane.
    """

    def __init__(self, first_nic: int = 0, address_plane: int | None = None) -> None:
        self._first_nic, self._address_plane = first_nic, address_plane
        self._switches: list[NewSwitch] = []
        self._hosts: list[tuple[_NewNic, ...]] = []
        self._counts: Counter[tuple[int, str]] = Counter()
        self._links = 0
        self._circuit_switches: list[NewCircuitSwitch] = []
        self._configurations: list[CircuitConfiguration] = []
        self._present = ""

    def add_switch(
        self,
        plane: int,
        role: str,
        *,
        tier: int | None = None,
        coordinates: tuple[int, ...] | None = None,
        group: int | None = None,
        position: tuple[int, ...] | None = None,
        letter: str | None = None,
    ) -> NewSwitch:
        """Add a switch.

        Args:
            plane: the plane it belongs to; planes count from 0.
            role: a word that the kind chooses.
            tier: distance from the hosts; by default 0, 1, 2 for leaf, spine, core and 0 for other roles.
            coordinates: its place as shown to users; by default its index.
            group: the pod, group or block that it belongs to.
            position: its place in the addresses, widest level first; by default its coordinates. Give switches that
                others reach in the same way a common beginning, so that one prefix covers them.
            letter: used in its name, `p0l3`; by default the known letter of the role, else the role's first letter.

        """
        index = self._counts[plane, role]
        self._counts[plane, role] += 1
        coordinates = (index,) if coordinates is None else coordinates
        switch = NewSwitch(
            plane=plane,
            role=role,
            index=index,
            name=addressing.switch_name(plane, letter or role_letter(role), index),
            tier=_TIERS.get(role, 0) if tier is None else tier,
            coordinates=coordinates,
            group=group,
            position=coordinates if position is None else position,
            address_plane=plane if self._address_plane is None else self._address_plane,
        )
        self._switches.append(switch)
        return switch

    def add_hosts(self, of_planes: Sequence[Sequence[NewSwitch]], count: int, link: LinkSpec) -> None:
        """Add `count` hosts to each place of the lists, with a NIC at the switch that each list has there.

        Raises as `add_host`.
        """
        for switches in zip(*of_planes, strict=True):
            for _ in range(count):
                self.add_host(switches, link)

    def add_host(self, switches: Sequence[NewSwitch], link: LinkSpec | Sequence[LinkSpec]) -> int:
        """Add a host with a NIC at each of these switches and return the host's index.

        Give one `link` for all NICs or one for each. A switch may appear twice.

        Raises:
            TopologyError: a switch has no port left, or the host's planes differ from the first host's.

        """
        links = [link] * len(switches) if isinstance(link, LinkSpec) else link
        planes = [switch.plane for switch in switches]
        if self._hosts and planes != (others := [nic.switch.plane for nic in self._hosts[0]]):
            raise TopologyError(f"host h{len(self._hosts)} has NICs in planes {planes}, others in {others}")
        index = len(self._hosts)
        name = addressing.host_name(index)
        nics = []
        for number, (switch, each) in enumerate(zip(switches, links, strict=True), start=self._first_nic):
            self._count_link()
            port = self._add_port(switch, Endpoint(name, number), each, peer_is_host=True)
            nics.append(_NewNic(switch, number, switch.nics, port, each))
            switch.nics += 1
        self._hosts.append(tuple(nics))
        return index

    def add_link(self, a: NewSwitch, b: NewSwitch, link: LinkSpec) -> None:
        """Add a link between two switches of a plane, parallel to any that they have.

        Raises:
            TopologyError: the switches are in different planes or the same switch, or one has no port left.

        """
        if a is b or a.plane != b.plane:
            raise TopologyError(f"no link can join {a.name} and {b.name}", valid="two switches of a plane")
        self._count_link()
        here, there = Endpoint(a.name, len(a.ports) + 1), Endpoint(b.name, len(b.ports) + 1)
        self._add_port(a, there, link, peer_is_host=False)
        self._add_port(b, here, link, peer_is_host=False)

    def add_circuit_switch(self, plane: int) -> NewCircuitSwitch:
        """Add a circuit switch, `p0o0`, `p0o1`, … in plane 0."""
        index = sum(each.plane == plane for each in self._circuit_switches)
        switch = NewCircuitSwitch(plane, addressing.switch_name(plane, "o", index))
        self._circuit_switches.append(switch)
        return switch

    def add_circuit_port(self, switch: NewSwitch, circuit_switch: NewCircuitSwitch, link: LinkSpec) -> Endpoint:
        """Cable a new port of a switch to a circuit switch of its plane; its circuits have the figures of `link`.

        Raises:
            TopologyError: the two are in different planes, or the switch has no port left.

        """
        if switch.plane != circuit_switch.plane:
            raise TopologyError(f"{switch.name} and {circuit_switch.name} are in different planes")
        self._count_link()
        here = Endpoint(circuit_switch.name, len(circuit_switch.ports) + 1)
        number = self._add_port(switch, here, link, peer_is_host=False, circuit=here)
        circuit_switch.ports.append(Endpoint(switch.name, number))
        return circuit_switch.ports[-1]

    def set_configurations(self, configurations: Sequence[CircuitConfiguration], present: str) -> None:
        """Set the configurations that the circuit switches may have and the name of the initial one."""
        self._configurations, self._present = list(configurations), present

    def _count_link(self) -> None:
        self._links += 1
        require_links(self._links, "the fabric")

    def _add_port(
        self,
        switch: NewSwitch,
        peer: Endpoint,
        link: LinkSpec,
        peer_is_host: bool,
        circuit: Endpoint | None = None,
    ) -> int:
        number = len(switch.ports) + 1
        if number > addressing.MAX_PORTS:
            raise TopologyError(f"{switch.name} would have {number} ports", valid=f"at most {addressing.MAX_PORTS}")
        switch.ports.append(
            PortSpec(
                number=number,
                interface=addressing.interface_name(switch.name, number),
                peer=peer,
                peer_interface="" if circuit else addressing.interface_name(peer.node, peer.port),
                peer_is_host=peer_is_host,
                link=link,
                circuit=circuit,
            )
        )
        return number

    def build(
        self,
        parameters: Mapping[str, object],
        tree_children: int = DEFAULT_TREE_CHILDREN,
        is_scale_up: bool = False,
    ) -> FabricSpec:
        """Return the fabric; all arguments are attributes of `FabricSpec`.

        Raises:
            TopologyError: there are no hosts, two switches share a name, or the address space is too small.

        """
        if not self._hosts:
            raise TopologyError("a fabric needs a host")
        self._require_names()
        planes = 1 + max(switch.plane for switch in self._switches)
        plan = address_plan(planes, [switch.placed for switch in self._switches])
        by_plane = [switch for plane in range(planes) for switch in self._switches if switch.plane == plane]
        addresses = {switch.name: plan.of_switch(switch.placed) for switch in by_plane}
        switches = tuple(
            _switch(switch, device_id, addresses[switch.name]) for device_id, switch in enumerate(by_plane, start=1)
        )
        fabric = FabricSpec(
            planes=planes,
            hosts=tuple(_host(index, nics, plan, addresses) for index, nics in enumerate(self._hosts)),
            switches=switches,
            links=links_of(switches),
            parameters=parameters,
            plane_networks=tuple(plan.plane_networks(plane) for plane in range(planes)),
            circuits=self._circuit_plan(switches),
            tree_children=tree_children,
            is_scale_up=is_scale_up,
        )
        return fabric if fabric.circuits is None else fabric.in_configuration(fabric.circuits.present)

    def _circuit_plan(self, switches: Sequence[SwitchSpec]) -> CircuitPlan | None:
        if not self._circuit_switches:
            return None
        circuit_switches = tuple(
            CircuitSwitch(each.name, each.plane, tuple(each.ports)) for each in self._circuit_switches
        )
        plan = CircuitPlan(circuit_switches, tuple(self._configurations), self._present)
        plan.configuration(self._present)
        plan.check({Endpoint(switch.name, port.number): port for switch in switches for port in switch.ports})
        return plan

    def _require_names(self) -> None:
        (name, count), *_ = Counter(switch.name for switch in self._switches).most_common(1)
        if count > 1:
            roles = sorted({switch.role for switch in self._switches if switch.name == name})
            raise TopologyError(f"{name} is a switch of several roles, {', '.join(roles)}: give them letters")


def role_letter(role: str) -> str:
    """Return the default letter in the names of a role's switches."""
    return _LETTERS.get(role, role[0])


def require_links(count: int, what: str) -> None:
    """Raise TopologyError if a fabric would have too many links; kinds call it before they build anything."""
    if count > MOST_LINKS:
        raise TopologyError(f"{what} has {count} links or more", valid=f"at most {MOST_LINKS}")


def require_configurations(configurations: int, links: int, what: str) -> None:
    """Raise TopologyError if circuits would have too many configurations, each with `links` links."""
    if configurations > MOST_CONFIGURATIONS:
        raise TopologyError(f"{what} has {configurations} configurations", valid=f"at most {MOST_CONFIGURATIONS}")
    if configurations * links > MOST_LINKS_OF_CONFIGURATIONS:
        raise TopologyError(
            f"{what} has {configurations * links} links in its {configurations} configurations together",
            valid=f"at most {MOST_LINKS_OF_CONFIGURATIONS}",
        )


def _switch(switch: NewSwitch, device_id: int, addresses: SwitchAddresses) -> SwitchSpec:
    return SwitchSpec(
        name=switch.name,
        device_id=device_id,
        plane=switch.plane,
        index=switch.index,
        role=switch.role,
        tier=switch.tier,
        address=addresses.address,
        ipv6=addresses.ipv6,
        mac=addresses.mac,
        ports=tuple(switch.ports),
        coordinates=switch.coordinates,
        group=switch.group,
        networks=addresses.networks,
    )


def _host(index: int, nics: Sequence[_NewNic], plan: AddressPlan, addresses: Mapping[str, SwitchAddresses]) -> HostSpec:
    name = addressing.host_name(index)
    specs = []
    for nic in nics:
        own, gateway = plan.of_nic(nic.switch.placed, nic.position), addresses[nic.switch.name]
        specs.append(
            NicSpec(
                number=nic.number,
                plane=nic.switch.plane,
                interface=addressing.interface_name(name, nic.number),
                mac=own.mac,
                ipv4=own.ipv4,
                ipv6=own.ipv6,
                gateway_ipv4=gateway.address,
                gateway_ipv6=gateway.ipv6,
                gateway_mac=gateway.mac,
                switch=nic.switch.name,
                switch_port=nic.port,
                link=nic.link,
            )
        )
    return HostSpec(name=name, index=index, nics=tuple(specs))
