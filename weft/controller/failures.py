"""The failed links and switches of a fabric: an immutable set that routing and tree planning avoid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.topologies import PortSpec, SwitchSpec


@dataclass(frozen=True)
class Failures:
    """Failed links, each as the set of its two nodes, and failed switches."""

    links: frozenset[frozenset[str]] = frozenset()
    switches: frozenset[str] = frozenset()

    def with_link(self, a: str, b: str) -> Failures:
        """Return these failures and the link between two adjacent nodes."""
        return replace(self, links=self.links | {frozenset((a, b))})

    def without_link(self, a: str, b: str) -> Failures:
        """Return these failures without that link."""
        return replace(self, links=self.links - {frozenset((a, b))})

    def with_switch(self, name: str) -> Failures:
        """Return these failures and a switch."""
        return replace(self, switches=self.switches | {name})

    def without_switch(self, name: str) -> Failures:
        """Return these failures without that switch."""
        return replace(self, switches=self.switches - {name})

    def is_up(self, switch: str, port: PortSpec) -> bool:
        """Return whether a port of a switch has a working link to a working neighbour."""
        return (
            switch not in self.switches
            and port.peer.node not in self.switches
            and frozenset((switch, port.peer.node)) not in self.links
        )

    def live_ports(self, switch: SwitchSpec) -> Iterable[PortSpec]:
        """Ports of a switch to other switches that are up."""
        return (port for port in switch.fabric_ports if self.is_up(switch.name, port))


NO_FAILURES = Failures()
