"""Traceroute: finds the routers on the path between hosts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, ClassVar

from weft.quantities.definitions import PositiveTime, whole
from weft.quantities.readable import counted
from weft.quantities.units import PS_PER_S
from weft.results.plain_hosts import ROUTES
from weft.results.plain_hosts_model import RouteResult
from weft.run.plain_hosts import route_task
from weft.run.plain_items import HostPairs, PlainItem, check_pairs, check_requests, pairs_of
from weft.scenario.places import KeyProblem
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


_MOST_IDENTIFIERS = 65535
"""Most identifiers of a host's echo requests; each route uses one for each hop limit."""


class TracerouteTraffic(PlainItem):
    """Echo requests with growing hop limits; each router that reports an expired one is on the path.

    A switch that sends no report shows as `*`: its program has no table `time_exceeded`, or its rate limit is used up.
    """

    kind = "traceroute"
    results: ClassVar = ROUTES

    traceroute: HostPairs
    """Pairs of hosts, `h0->h3`, or `all`."""
    hops: Annotated[int, whole(1, 255)] = 8
    """Largest hop limit."""
    probes: Annotated[int, whole(1, 10)] = 3
    """Requests for each hop limit."""
    timeout: PositiveTime = 1_000_000_000_000
    """Time after which a request without an answer counts as lost."""

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check the pairs and the number of requests."""
        check_pairs(self.traceroute, topology, f"{key}.traceroute")
        pairs = pairs_of(self.traceroute, topology)
        check_requests(len(pairs) * self.hops * self.probes, f"{key}.hops")
        source, routes = Counter(pair[0] for pair in pairs).most_common(1)[0]
        if routes * self.hops > _MOST_IDENTIFIERS:
            raise KeyProblem(
                f"{key}.hops",
                f"{self.hops}, with {counted(routes, 'route')} from {source}",
                valid="up to "
                f"{_MOST_IDENTIFIERS // routes}; a host has {_MOST_IDENTIFIERS} identifiers of echo requests",
            )

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the timeout of a request."""
        return super().time_limit_s(fabric) + self.timeout / PS_PER_S

    def task(self, fabric: Fabric) -> Task[list[RouteResult]]:
        """Return the probes as a task."""
        pairs = pairs_of(self.traceroute, fabric.topology)
        return route_task(fabric, pairs, self.hops, self.probes, self.timeout)
