"""Circuits: optical circuit switches join ports of packet switches in pairs, according to a configuration.

A circuit switch handles no packets and has neither tables nor queues: a signal that enters one port of a pair leaves
by the other. Two ports have a link while a circuit joins them; a port without a circuit is dark. The named
configurations, each a set of circuits, are fixed before a fabric runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

from weft.quantities.text import Text
from weft.topologies import addressing
from weft.topologies.errors import TopologyError
from weft.topologies.parts import Endpoint, FabricLink, PortSpec, SwitchSpec

ConfigurationName = Annotated[str, Text("a word in small letters", r"\A[a-z][a-z0-9_-]{0,31}\Z", "long")]
MOST_CONFIGURATIONS = 256
Circuit = tuple[Endpoint, Endpoint]
"""Two ports of packet switches that a circuit joins."""


@dataclass(frozen=True)
class CircuitSwitch:
    """A circuit switch: its port n, from 1, is cabled to the packet switch's port `ports[n - 1]`."""

    name: str
    plane: int
    ports: tuple[Endpoint, ...]


@dataclass(frozen=True)
class CircuitConfiguration:
    """A set of circuits that the circuit switches hold at the same time.

    Attributes:
        name: chosen by schedules and operators.
        circuits: pairs of packet switches' ports; ports in no pair are dark.
        coordinates: new coordinates of packet switches that the configuration moves.

    """

    name: str
    circuits: tuple[Circuit, ...]
    coordinates: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CircuitPlan:
    """The circuit switches of a fabric, their possible configurations, and the name of the present one."""

    switches: tuple[CircuitSwitch, ...]
    configurations: tuple[CircuitConfiguration, ...]
    present: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all configurations."""
        return tuple(each.name for each in self.configurations)

    def configuration(self, name: str) -> CircuitConfiguration:
        """Return a configuration by name; TopologyError lists the valid names."""
        for each in self.configurations:
            if each.name == name:
                return each
        raise TopologyError(f"unknown configuration {name!r} of circuits", valid=self.names)

    @cached_property
    def circuits(self) -> tuple[Circuit, ...]:
        """The circuits of all configurations, each once."""
        found = (circuit for each in self.configurations for circuit in each.circuits)
        return tuple({frozenset(circuit): circuit for circuit in found}.values())

    @cached_property
    def port_of(self) -> Mapping[Endpoint, Endpoint]:
        """The circuit switch's port that a packet switch's port is cabled to."""
        return {
            end: Endpoint(switch.name, number)
            for switch in self.switches
            for number, end in enumerate(switch.ports, start=1)
        }

    def check(self, ports: Mapping[Endpoint, PortSpec]) -> None:
        """Check that every configuration is possible, given the packet switches' `ports`.

        Raises:
            TopologyError: two configurations share a name; a circuit joins ports of different circuit switches or
                different rates; or two circuits share a port.

        """
        for number, each in enumerate(self.configurations):
            if each.name in self.names[:number]:
                raise TopologyError(f"two configurations of circuits are called {each.name!r}")
            used: set[Endpoint] = set()
            for a, b in each.circuits:
                here, there = self.port_of.get(a), self.port_of.get(b)
                if here is None or there is None or here.node != there.node or a == b:
                    raise TopologyError(
                        f"configuration {each.name}: no circuit can join {a} and {b}",
                        valid="two ports that are cabled to one circuit switch",
                    )
                if ports[a].link != ports[b].link:
                    raise TopologyError(f"configuration {each.name}: {a} and {b} have links of different kinds")
                if {a, b} & used:
                    raise TopologyError(f"configuration {each.name}: two circuits have {min({a, b} & used)}")
                used |= {a, b}


def rejoined(
    switches: Iterable[SwitchSpec], plan: CircuitPlan, configuration: CircuitConfiguration
) -> tuple[SwitchSpec, ...]:
    """Return the packet switches with the ports' peers and the coordinates of a configuration."""
    peers = {here: there for a, b in configuration.circuits for here, there in ((a, b), (b, a))}
    changing = {end.node for each in plan.switches for end in each.ports} | configuration.coordinates.keys()
    return tuple(
        replace(
            switch,
            ports=tuple(_rejoined(switch, port, peers) for port in switch.ports),
            coordinates=configuration.coordinates.get(switch.name, switch.coordinates),
        )
        if switch.name in changing
        else switch
        for switch in switches
    )


def _rejoined(switch: SwitchSpec, port: PortSpec, peers: Mapping[Endpoint, Endpoint]) -> PortSpec:
    if port.circuit is None:
        return port
    peer = peers.get(Endpoint(switch.name, port.number))
    if peer is None:
        return replace(port, peer=port.circuit, peer_interface="")
    return replace(port, peer=peer, peer_interface=addressing.interface_name(peer.node, peer.port))


def links_of(switches: Iterable[SwitchSpec]) -> tuple[FabricLink, ...]:
    """Return the links that switches have, to hosts and to each other, each once."""
    switches = tuple(switches)
    # Between switches of a tier, the first in order counts as nearer to the hosts.
    places = {switch.name: (switch.tier, number) for number, switch in enumerate(switches)}
    links = []
    for switch in switches:
        for port in switch.ports:
            here = Endpoint(switch.name, port.number)
            if port.peer_is_host:
                links.append(FabricLink(port.peer, here, port.link))
            elif not port.is_dark and places[port.peer.node] > places[switch.name]:
                links.append(FabricLink(here, port.peer, port.link))
    return tuple(links)
