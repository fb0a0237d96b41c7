"""Routes by demand: shortest paths chosen by the traffic matrix, installed as routes to single hosts.

Where a switch has several next hops to a host, an entry for the host's address (/32, /128) in the table of prefixes
names the one that keeps the fullest link least loaded (`demand_paths.py`). All other traffic takes the ECMP groups of
`shortest_paths`, and so does everything if hashes are expected to do better, or while the matrix is unknown.

After a failure, paths that are still there stay, and only those that it cuts are chosen anew; the same holds for
parts that an operator takes out of use. When everything is up again, so are the first paths.
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network

from weft.controller.demand import Demand, DemandLoads
from weft.controller.entities import Entity
from weft.controller.failures import Failures
from weft.controller.routing.balanced_paths import Links
from weft.controller.routing.demand_paths import ChosenPaths, DemandPaths, Stream
from weft.controller.routing.routes import LpmEntries, SwitchRoutes
from weft.controller.routing.shortest_paths import KIND as SHORTEST_PATHS
from weft.controller.routing.shortest_paths import ShortestPaths
from weft.topologies import FabricSpec
from weft.topologies.addressing import IpVersion

ROUTE_ENTRIES = 16384
"""Entries of Weft's program for each IP version (`ipv4_lpm` and `ipv6_lpm` in p4/include/forwarding.p4)."""
Entities = tuple[Entity, ...]
_Wanted = tuple[tuple[int, int], ...]
"""Destinations in order of their demand, each with the port towards it."""
_NOTHING = ChosenPaths({}, 0, 0, 0)


class ByDemand(ShortestPaths):
    """The routes of a plane."""

    def __init__(self, fabric: FabricSpec, plane: int) -> None:
        super().__init__(fabric, plane)
        self._plane = plane
        self._links = Links.between(self._switches)
        self._rates = tuple(port.link.rate_bps for switch in self._switches for port in switch.fabric_ports)
        self._place_of = {
            (port.peer.node, port.peer.port): place
            for place, switch in enumerate(self._switches)
            for port in switch.host_ports
        }
        self._nics: list[tuple[str, int]] = []
        self._streams: list[Stream] = []
        self._intact: ChosenPaths | None = None
        self._chosen = _NOTHING
        self._down: frozenset[int] | None = None
        self._destinations: dict[int, tuple[LpmEntries, ...]] = {}
        self._with_hosts_routes: dict[str, tuple[Entities, _Wanted, Entities]] = {}
        self._left: set[int] = set()
        self._most_entries = 0

    def expect(self, matrix: tuple[Demand, ...]) -> None:
        """Choose paths for this traffic from the next plan on."""
        sizes: dict[tuple[int, tuple[str, int]], list[int]] = {}
        for each in matrix:
            entry = self._place_of.get((each.source, each.nic))
            if entry is not None and (each.destination, each.nic) in self._place_of:
                sizes.setdefault((entry, (each.destination, each.nic)), []).append(each.size_bytes)
        self._nics = sorted({nic for _, nic in sizes}, key=lambda nic: (self._fabric.host(nic[0]).index, nic[1]))
        numbers = {nic: number for number, nic in enumerate(self._nics)}
        self._streams = [
            Stream(entry, numbers[nic], self._place_of[nic], tuple(found)) for (entry, nic), found in sizes.items()
        ]
        self._intact = self._down = None
        self._destinations.clear()
        self._with_hosts_routes.clear()

    def plan(self, failures: Failures) -> dict[str, Entities]:
        """Return every switch's entities, with the routes to single hosts."""
        routes = super().plan(failures)
        if not self._streams:
            self._chosen, self._left, self._most_entries = _NOTHING, set(), 0
            return routes
        self._choose()
        wanted = self._wanted_routes()
        self._left, self._most_entries = set(), 0
        return {
            switch.name: self._with_routes(switch.name, routes[switch.name], wanted[place])
            for place, switch in enumerate(self._switches)
        }

    def loads(self) -> DemandLoads:
        """Return how full the fullest link becomes in the latest plan."""
        chosen = self._chosen
        return DemandLoads(
            self._plane,
            chosen.fullest_ps,
            chosen.ecmp_ps,
            chosen.bound_ps,
            len(chosen.hops),
            len(self._left),
            self._most_entries,
        )

    def _choose(self) -> None:
        """Choose paths around the links that are down, if these or the demand have changed."""
        up = [{hop.port for _, hop in ports} for ports in self._live]
        ends = zip(self._links.start, self._links.port, strict=True)
        down = frozenset(link for link, (place, port) in enumerate(ends) if port not in up[place])
        if down == self._down:
            return
        self._down = down
        if self._intact is None:
            self._intact = DemandPaths(self._links, self._rates).choose(self._streams)
        self._chosen = self._intact
        if down:
            kept = self._intact.hops or None
            self._chosen = DemandPaths(self._links, self._rates, down).choose(self._streams, kept)

    def _wanted_routes(self) -> list[_Wanted]:
        """Return by place the routes to single hosts, those with the most demand first."""
        demand: dict[int, int] = {}
        for stream in self._streams:
            demand[stream.destination] = demand.get(stream.destination, 0) + stream.size_bytes
        wanted: list[list[tuple[int, int]]] = [[] for _ in self._switches]
        for destination in sorted(self._chosen.hops, key=lambda each: (-demand[each], each)):
            for place, link in self._chosen.hops[destination].items():
                wanted[place].append((destination, self._links.port[link]))
        return list(map(tuple, wanted))

    def _with_routes(self, switch: str, routes: Entities, wanted: _Wanted) -> Entities:
        """Return a switch's routes with those to single hosts; the same object as before if neither has changed."""
        rooms = self._rooms(self.routes[switch])
        room = min(rooms.values(), default=0)
        self._left.update(destination for destination, _ in wanted[room:])
        wanted = wanted[:room]
        self._most_entries = max(self._most_entries, len(wanted))
        if not wanted:
            return routes
        known = self._with_hosts_routes.get(switch)
        if known is None or known[0] is not routes or known[1] != wanted:
            hops = {hop.port: hop for _, hop in self._live[self._place[switch]]}
            own = tuple(
                lpm.next_hop(hops[port]) for destination, port in wanted for lpm in self._entries_of_nic(destination)
            )
            known = self._with_hosts_routes[switch] = (routes, wanted, (*routes, *own))
        return known[2]

    def _rooms(self, routes: SwitchRoutes) -> dict[IpVersion, int]:
        """Return how many more routes a switch holds, by IP version."""
        rooms = dict.fromkeys(self._scope.ip_versions, ROUTE_ENTRIES)
        for route in routes:
            rooms[4 if route.prefix.version == 4 else 6] -= 1
        return {version: max(0, room) for version, room in rooms.items()}

    def _entries_of_nic(self, destination: int) -> tuple[LpmEntries, ...]:
        found = self._destinations.get(destination)
        if found is None:
            host, number = self._nics[destination]
            nic = self._fabric.host(host).nic(number)
            prefixes = (ip_network(each.ip) for each in (nic.ipv4, nic.ipv6))
            found = tuple(LpmEntries(each) for each in prefixes if each.version in self._scope.ip_versions)
            self._destinations[destination] = found
        return found


KIND = replace(
    SHORTEST_PATHS,
    name="demand",
    summary="shortest paths chosen by the traffic matrix, ECMP for all other traffic",
    plane=ByDemand,
    follows_demand=True,
)
