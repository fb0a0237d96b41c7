"""The insides of hosts, in the partition that the ranks of a host share."""

from __future__ import annotations

from collections.abc import Mapping

from weft.engine import Engine, _core
from weft.scenario import FabricOptions
from weft.scenario.host import host_routes
from weft.topologies import FabricSpec
from weft.topologies.hosts.routes import HostRoutes, Route
from weft.traffic.host_inside import ChunkCopies, HostInside


def host_insides(fabric: FabricSpec, options: FabricOptions, engines: Mapping[str, Engine]) -> dict[int, HostInside]:
    """Make the links inside every host; returns what each rank has of them. `engines` are the endpoints' by name."""
    routes = host_routes(fabric, options)
    if routes is None:
        return {}
    scale_up = fabric.scale_up
    hosts = list(scale_up.hosts(len(fabric.hosts))) if scale_up else [(rank,) for rank in range(len(fabric.hosts))]
    index = {rank: number for ranks in hosts for number, rank in enumerate(ranks)}
    names, rates_bps = [link.name for link in routes.links], [link.rate_bps for link in routes.links]
    numbers = {link: number for number, link in enumerate(routes.links)}
    copies = [_copies_with(routes, number) for number in range(routes.ranks)]
    own_copies = [
        {nic: own for nic, route in enumerate(of_rank) if (own := _copies(routes, route)) is not None}
        for of_rank in routes.routes
    ]
    insides: dict[int, HostInside] = {}
    for ranks in hosts:
        first = fabric.hosts[ranks[0]].name
        links = _core.HostLinks(engines[first], rates_bps)
        for number, rank in enumerate(ranks):
            ways = [
                ([numbers[link] for link in route.fetched], [numbers[link] for link in route.placed])
                for route in routes.routes[number]
            ]
            insides[rank] = HostInside(
                links, names, rates_bps, ways, index, copies[number], own_copies[number], first, is_first=number == 0
            )
    return insides


def _copies_with(routes: HostRoutes, number: int) -> dict[tuple[int, int], ChunkCopies]:
    """Return the copies of messages to and from a rank by the other's number in its host, and the NIC."""
    found = {
        (other, nic): _copies(routes, routes.routes[number][nic], routes.routes[other][nic])
        for other in range(routes.ranks)
        for nic in range(routes.nics)
    }
    return {key: copies for key, copies in found.items() if copies is not None}


def _copies(routes: HostRoutes, *ends: Route) -> ChunkCopies | None:
    staged = [route for route in ends if route.is_staged]
    if not staged:
        return None
    settings = routes.settings
    rate_bps = 1 / sum(1 / route.copy_rate_bps for route in staged)
    return ChunkCopies(len(staged) * settings.copy_latency_ps, settings.chunk_bytes, round(rate_bps))
