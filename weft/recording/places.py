"""Names and numbers of the places of a fabric: ports, and switches as a whole."""

from __future__ import annotations

from functools import cached_property

from weft.hints import did_you_mean
from weft.scenario import KeyProblem
from weft.topologies import FabricSpec, LinkSpec


class Places:
    """Every port of switches and hosts, NODE:PORT, and then every switch, numbered as in probes' columns."""

    def __init__(self, fabric: FabricSpec) -> None:
        self._links: dict[str, tuple[str, LinkSpec]] = {}
        for switch in fabric.switches:
            for port in switch.ports:
                self._links[f"{switch.name}:{port.number}"] = (str(port.peer), port.link)
        for host in fabric.hosts:
            for nic in host.nics:
                self._links[f"{host.name}:{nic.number}"] = (f"{nic.switch}:{nic.switch_port}", nic.link)
        self.names = [*self._links, *(switch.name for switch in fabric.switches)]

    @property
    def ports(self) -> list[str]:
        """Names of all ports."""
        return list(self._links)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Numbers by name."""
        return {name: number for number, name in enumerate(self.names)}

    def peer(self, port: str) -> str:
        """Return the port at the other end of a port's link."""
        return self._links[port][0]

    def link(self, port: str) -> LinkSpec:
        """Return the properties of the port's link."""
        return self._links[port][1]

    def checked_ports(self, key: str, chosen: list[str]) -> list[str]:
        """Return ports that a scenario names; KeyProblem for one that does not exist."""
        for name in chosen:
            if name not in self._links:
                raise KeyProblem(f"observe.{key}", f"no port '{name}'; {did_you_mean(name, self._links)}")
        return list(dict.fromkeys(chosen))
