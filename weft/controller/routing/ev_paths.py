"""Paths that entropy values (EVs) of a transport name, where switches do not hash them (docs/mrc.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from weft.controller.failures import NO_FAILURES
from weft.topologies import FabricSpec, HostSpec, NicSpec, Path, TopologyError
from weft.topologies.paths import shortest_paths

MOST_PATHS = 4096
"""Paths between two hosts' NICs that EVs can name."""
EvRoute = tuple[int, str]
"""An EV, and the address in the outer header of its packets (empty: they have none)."""

EvOfPath = Callable[[Path, int], EvRoute]


@dataclass(frozen=True)
class EvRoutesKind:
    """How a kind of routing has EVs name paths.

    Attributes:
        encapsulates: packets go in an outer IPv6 header.
        routes: returns a fabric's function from a path, and its number among the paths between two hosts, to its EV.

    """

    encapsulates: bool
    routes: Callable[[FabricSpec], EvOfPath]


class EvPaths:
    """The paths between the hosts of a fabric, each with its EV. They do not depend on failures."""

    def __init__(self, fabric: FabricSpec, kind: EvRoutesKind) -> None:
        self._fabric = fabric
        self.kind = kind
        self.avoided = NO_FAILURES
        """Links and switches that an operator has hosts leave: EVs of paths over them are denied."""
        self._route = kind.routes(fabric)
        self._known: dict[tuple[str, str, int], tuple[Path, ...]] = {}

    def paths(self, source: str, destination: str, nic: int) -> tuple[Path, ...]:
        """Return the shortest paths between two hosts' NICs, in order of ports.

        Raises:
            TopologyError: a host is unknown, there is no path, or there are more than EVs can name.

        """
        key = source, destination, nic
        found = self._known.get(key)
        if found is None:
            found = tuple(islice(shortest_paths(self._fabric, source, destination, nic), MOST_PATHS + 1))
            if not 0 < len(found) * self._fabric.planes <= MOST_PATHS:
                count = f"more than {MOST_PATHS}" if len(found) > MOST_PATHS else len(found)
                raise TopologyError(
                    f"{count} paths lead from {source} to {destination}",
                    valid=f"1 to {MOST_PATHS // self._fabric.planes}, of which EVs name each",
                )
            self._known[key] = found
        return found

    def routes(self, source: str, destination: str, nic: int) -> list[EvRoute]:
        """Return the EVs from a host's NIC to another host's, in the order of `paths`. Raises as `paths`."""
        planes = self._fabric.planes
        return [
            self._route(path, number * planes + path.plane)
            for number, path in enumerate(self.paths(source, destination, nic))
        ]

    def to(self, source: str, address: str) -> list[tuple[Path, EvRoute]]:
        """Return the paths from a host to another host's address, each with its EV.

        Raises TopologyError, also for an unknown address.
        """
        if address not in self._nics:
            raise TopologyError(f"no host has the address {address}")
        host, nic = self._nics[address]
        paths = self.paths(source, host.name, nic.number)
        return list(zip(paths, self.routes(source, host.name, nic.number), strict=True))

    def is_avoided(self, path: Path) -> bool:
        """Return whether a path passes a link or a switch that is avoided."""
        return any(
            not self.avoided.is_up(hop.node, self._fabric.switch(hop.node).port(hop.port)) for hop in path.hops[1:]
        )

    @cached_property
    def _nics(self) -> dict[str, tuple[HostSpec, NicSpec]]:
        return {
            str(address.ip): (host, nic)
            for host in self._fabric.hosts
            for nic in host.nics
            for address in (nic.ipv4, nic.ipv6)
        }


@dataclass(frozen=True)
class EvPathsOfHost:
    """The paths from one host."""

    of_fabric: EvPaths
    host: str

    @property
    def encapsulates(self) -> bool:
        """Whether packets go in an outer IPv6 header."""
        return self.of_fabric.kind.encapsulates

    def routes_to(self, address: str) -> list[EvRoute]:
        """Return the EVs to another host's address. Raises TopologyError for an unknown one."""
        return [route for _, route in self.of_fabric.to(self.host, address)]

    def denied_to(self, address: str) -> frozenset[int]:
        """Return the EVs to another host's address that pass what an operator has hosts leave."""
        if self.of_fabric.avoided == NO_FAILURES:
            return frozenset()
        return frozenset(
            value for path, (value, _) in self.of_fabric.to(self.host, address) if self.of_fabric.is_avoided(path)
        )

    def nodes_to(self, address: str) -> dict[int, tuple[str, ...]]:
        """Return the nodes on the path of each EV to another host's address."""
        return {value: path.nodes for path, (value, _) in self.of_fabric.to(self.host, address)}
