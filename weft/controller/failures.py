"""The failed links and switches of a fabric: an immutable set that routes and trees avoid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from weft.topologies import Endpoint, FabricLink, LinkEnds, PortSpec, SwitchSpec


@dataclass(frozen=True)
class Failures:
    """Failed links, identified by their two ends, and failed switches."""

    links: frozenset[LinkEnds] = frozenset()
    switches: frozenset[str] = frozenset()

    def with_link(self, link: FabricLink) -> Failures:
        """Return these failures plus a link."""
        return replace(self, links=self.links | {link.ends})

    def without_link(self, link: FabricLink) -> Failures:
        """Return these failures without a link."""
        return replace(self, links=self.links - {link.ends})

    def __or__(self, others: Failures) -> Failures:
        """Return the union with other failures."""
        return Failures(self.links | others.links, self.switches | others.switches)

    def with_switch(self, name: str) -> Failures:
        """Return these failures plus a switch."""
        return replace(self, switches=self.switches | {name})

    def without_switch(self, name: str) -> Failures:
        """Return these failures without a switch."""
        return replace(self, switches=self.switches - {name})

    def is_up(self, switch: str, port: PortSpec) -> bool:
        """Return whether a port of a switch has a working link to a working neighbour."""
        return (
            switch not in self.switches
            and port.peer.node not in self.switches
            and not (self.links and port.peer in self.ports)
        )

    @cached_property
    def ports(self) -> frozenset[Endpoint]:
        """Both ends of all failed links."""
        return frozenset(end for ends in self.links for end in ends)

    def live_ports(self, switch: SwitchSpec) -> Iterable[PortSpec]:
        """Return a switch's ports with a working link to a working switch."""
        return (port for port in switch.fabric_ports if self.is_up(switch.name, port))


NO_FAILURES = Failures()
