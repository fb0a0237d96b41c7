"""Ping: ICMP echo requests between hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from weft.quantities.definitions import PositiveTime, whole
from weft.quantities.units import PS_PER_S
from weft.results.plain_hosts import PINGS
from weft.results.plain_hosts_model import PingResult
from weft.run.plain_hosts import PingPlan, ping_task
from weft.run.plain_items import HostPairs, PlainItem, check_pairs, check_requests, pairs_of
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


_HEADER_BYTES = {4: 28, 6: 48}
"""Bytes of the IP and ICMP headers, by IP version."""


class PingTraffic(PlainItem):
    """Hosts ping each other to measure round trips and losses."""

    kind = "ping"
    results: ClassVar = PINGS

    ping: HostPairs
    """Pairs of hosts, `h0->h3`, or `all`; all pings run concurrently."""
    count: Annotated[int, whole(1, 65535)] = 5
    """Requests of each pair."""
    interval: PositiveTime = 1_000_000_000
    """Time between requests."""
    timeout: PositiveTime = 1_000_000_000_000
    """Time after which a request without an answer counts as lost."""
    size: Annotated[int, whole(0, 8972)] = 56
    """Bytes of a request's data, after the ICMP header."""
    dscp: Annotated[int, whole(0, 63)] = 0
    """DSCP of requests and answers."""

    def largest_packet(self, ip_version: int) -> tuple[str, int]:
        """Return `size` and the bytes of a request."""
        return "size", self.size + _HEADER_BYTES[ip_version]

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check the pairs and the number of requests."""
        check_pairs(self.ping, topology, f"{key}.ping")
        check_requests(len(pairs_of(self.ping, topology)) * self.count, f"{key}.count")

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return the default plus the time of all requests."""
        return super().time_limit_s(fabric) + (self.count * self.interval + self.timeout) / PS_PER_S

    def task(self, fabric: Fabric) -> Task[list[PingResult]]:
        """Return the pings as a task."""
        plan = PingPlan(self.count, self.interval, self.timeout, self.size, self.dscp)
        return ping_task(fabric, pairs_of(self.ping, fabric.topology), plan)
