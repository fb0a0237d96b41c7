"""The counters of a host: the result of `Host.stats`, and an endpoint process's answer to `stats`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from weft.engine._core import AggregationStats, IpStats, Lateness, NicStats, PortMacStats, PortStats


class HopInBytes(TypedDict):
    """A hop of an INT stack. Timestamps are modulo 2^24 ns, `tx_bytes` modulo 2^27; a rate of 0 is unknown."""

    rate_bps: int
    timestamp_ns: int
    tx_bytes: int
    queue_bytes: int


class StackInBytes(TypedDict):
    """An INT stack; `hops` are those stamped, in the order in which the packet met them."""

    path_id: int
    overflow: bool
    hops: list[HopInBytes]


class HostPlaneStats(TypedDict):
    """A host's port on a plane."""

    plane: int
    nic: NicStats
    transmit: PortStats
    mac: PortMacStats | None
    socket: Mapping[str, Any] | None
    aggregation: AggregationStats | None


class PortTraffic(TypedDict):
    """Frames that a NIC's port has sent and received, without the MAC's own (PFC, credits)."""

    sent_packets: int
    sent_bytes: int
    received_packets: int


class ConnectionStats(TypedDict):
    """A queue pair: its peer, and the latest INT stack. The engine's `RcStats` are reported with these."""

    label: str
    plane: int
    peer: int
    telemetry: StackInBytes | None


class HostStats(TypedDict):
    """A host. `totals` are sums over all its queue pairs, including removed ones.

    `host`: its host's first rank. `links`: inside the host, from that rank. `most_waiting_bytes`: for each NIC, the
    most payload that has waited for them; [] without such links.

    `device`: what it counts for its RDMA device besides (`weft.verbs.counters.DEVICE_COUNTERS`); {} without one.

    `entropy_values`: for each plane, how many entropy values of connections and flows are in which state, or were when
    their queue pair ended; [] without any.
    """

    name: str
    rank: int
    now_ps: int
    failure: str | None
    lateness: Lateness
    planes: list[HostPlaneStats]
    scale_up: Mapping[str, int] | None
    host: str
    links: list[dict[str, Any]]
    most_waiting_bytes: list[int]
    ip: IpStats | None
    connections: list[ConnectionStats]
    entropy_values: list[dict[str, int]]
    totals: dict[str, int]
    device: dict[str, int]
