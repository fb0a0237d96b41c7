"""Ping: ICMP echo requests between hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from weft.quantities.definitions import PositiveTime, whole
from weft.results.plain_hosts import PINGS
from weft.results.plain_hosts_model import PingResult
from weft.run.plain_hosts import PingPlan, ping_task
from weft.run.plain_items import HostPairs, PlainItem, check_pairs, check_requests, pairs_of
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.run.task import Task


_HEADER_BYTES = {4: 28, 6: 48}
"""Of IP and ICMP, by IP version."""


class PingTraffic(PlainItem):
    """Hosts ping each other: how long an answer takes, and how many are lost."""

    kind = "ping"
    results: ClassVar = PINGS

    ping: HostPairs
    """Pairs of hosts, `h0->h3`, all beside each other; or `all`."""
    count: Annotated[int, whole(1, 65535)] = 5
    """Requests of each pair."""
    interval: PositiveTime = 1_000_000_000
    """Between them."""
    timeout: PositiveTime = 1_000_000_000_000
    """After which a request without an answer is lost."""
    size: Annotated[int, whole(0, 8972)] = 56
    """Bytes of a request's data, behind the ICMP header."""
    dscp: Annotated[int, whole(0, 63)] = 0
    """Of requests and answers."""

    def largest_packet(self, ip_version: int) -> tuple[str, int]:
        """Return what `size` makes of a request."""
        return "size", self.size + _HEADER_BYTES[ip_version]

    def check_fabric(self, topology: FabricSpec, key: str) -> None:
        """Check the pairs, and that there are not too many requests."""
        check_pairs(self.ping, topology, f"{key}.ping")
        check_requests(len(pairs_of(self.ping, topology)) * self.count, f"{key}.count")

    def time_limit_s(self, fabric: Fabric) -> float:
        """Return more than all requests take."""
        return super().time_limit_s(fabric) + (self.count * self.interval + self.timeout) / 1e12

    def task(self, fabric: Fabric) -> Task[list[PingResult]]:
        """Return the pings."""
        plan = PingPlan(self.count, self.interval, self.timeout, self.size, self.dscp)
        return ping_task(fabric, pairs_of(self.ping, fabric.topology), plan)
