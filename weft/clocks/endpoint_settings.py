"""The configuration of hosts' endpoints under either clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from weft.quantities.traffic_classes import CLASSES
from weft.quantities.units import PS_PER_S
from weft.scenario import MAX_SLOTS, ObserveSection
from weft.topologies import (
    Endpoint,
    FabricSpec,
    HostSpec,
    bandwidth_delay_product_bytes,
    longest_path,
    serialisation_ps,
)
from weft.topologies.addressing import IpVersion
from weft.topologies.round_trips import RoundTrips, latencies_ps, loaded_round_trip_ps
from weft.traffic.aggregation_format import LANE_COUNT, frame_bytes
from weft.traffic.host_config import HostRecording, NicConfig
from weft.traffic.host_ip import IpNicConfig
from weft.traffic.transport_settings import CreditSettings


def nic_settings(
    host: HostSpec,
    round_trips: Sequence[RoundTrips],
    pfc_quanta: int = 0,
    credits_of: Callable[[Endpoint, Endpoint], CreditSettings | None] = lambda _nic, _port: None,
    classes_of_dscps: Sequence[Mapping[int, int]] = (),
    quantum_bytes: tuple[int, ...] = (0,) * CLASSES,
) -> tuple[NicConfig, ...]:
    """Return the settings of a host's NICs.

    `round_trips` are the fabric's `round_trips_of_planes`; `pfc_quanta` is the pause time of its priority flow control,
    0 without; `credits_of` returns the credits of a link between a NIC and a switch's port; `classes_of_dscps` are each
    plane's (`weft.clocks.switch_memory.classes_of_dscps`); `quantum_bytes` as in `NicConfig`.
    """
    return tuple(
        NicConfig(
            interface=nic.interface,
            mac=nic.mac,
            ipv4=str(nic.ipv4.ip),
            ipv6=str(nic.ipv6.ip),
            gateway_mac=nic.gateway_mac,
            rate_bps=nic.link.rate_bps,
            base_round_trip_ps=round_trips[nic.plane].farthest_ps,
            nearest_round_trip_ps=round_trips[nic.plane].nearest_ps,
            nearest_hops=round_trips[nic.plane].nearest_switches,
            hop_round_trip_ps=round_trips[nic.plane].switch_ps,
            pfc_quanta=pfc_quanta,
            credits=credits_of(Endpoint(host.name, nic.number), Endpoint(nic.switch, nic.switch_port)),
            class_of_dscp=classes_of_dscps[nic.plane] if classes_of_dscps else {},
            quantum_bytes=quantum_bytes,
        )
        for nic in host.nics
    )


def plane_addresses(fabric: FabricSpec) -> tuple[tuple[str, ...], ...]:
    """Return the addresses of every host by plane, each IP version apart; none in a fabric of one plane."""
    if fabric.planes == 1:
        return ()
    return tuple(
        tuple(str(address.ip) for address in addresses)
        for host in fabric.hosts
        for addresses in ([nic.ipv4 for nic in host.nics], [nic.ipv6 for nic in host.nics])
    )


def ip_settings(fabric: FabricSpec, host: HostSpec, mtu_bytes: int) -> tuple[IpNicConfig, ...]:
    """Return how a host's NICs take part in IP where it has no kernel: with the routes that a kernel would have."""
    return tuple(
        IpNicConfig(
            on_link=(_text(nic.ipv4.network), _text(nic.ipv6.network)),
            routes={_text(prefix): _text(gateway) for prefix, gateway in fabric.gateways(nic).items()},
            neighbours=dict(nic.neighbours),
            mtu_bytes=mtu_bytes,
        )
        for nic in host.nics
    )


@lru_cache(maxsize=1 << 12)
def _text(address: object) -> str:
    """Return an address or prefix as text; hosts of a leaf share them, and IPv6's text takes long to make."""
    return str(address)


def recording_of(observe: ObserveSection, fabric: FabricSpec, host: HostSpec) -> HostRecording:
    """Return what a host is to record; TopologyError for a pair with an unknown host."""
    chosen = [] if observe.int_flows == "all" else [pair.split("->") for pair in observe.int_flows]
    return HostRecording(
        messages=observe.flows,
        telemetry_from=tuple(fabric.host(peer).index for source, peer in chosen if source == host.name),
        all_telemetry=observe.int_flows == "all",
        steps=observe.timelines,
    )


def patient_timeout_ps(
    fabric: FabricSpec,
    frame_bytes: int,
    switch_latency_ps: int = 0,
    lossless_memory_bytes: int = 0,
    shared_bytes: int | None = None,
) -> int:
    """Return a retransmission timeout that no full queue exceeds: four round trips, and the time to drain such a queue.

    This is for queue pairs, which go back by a window when it expires: if an incast's queue outlasts the timeout, the
    queue fills with packets sent before. Where ports share `shared_bytes`, no queue holds more than that. Under flow
    control one queue may hold nearly all of a switch's memory, and the queues behind it wait as long. Aggregation
    repeats single packets, so its timeout is shorter (`weft.traffic.host.Host.timeout_ps`).
    """
    drain_ps = 0
    for link in fabric.links:
        own_bytes = link.link.queue_capacity_bytes
        queue_bytes = own_bytes if shared_bytes is None else min(own_bytes, shared_bytes)
        drain_ps = max(drain_ps, serialisation_ps(max(queue_bytes, lossless_memory_bytes), link.link.rate_bps))
    return 4 * loaded_round_trip_ps(fabric, frame_bytes, switch_latency_ps) + drain_ps


def default_slot_count(
    fabric: FabricSpec, ip_version: IpVersion, switch_latency_ps: int = 0, lane_count: int = LANE_COUNT
) -> int:
    """Return the slots of a job: two bandwidth-delay products of aggregation packets, a power of two.

    They are at least 16, and at most what a switch has memory for. One product keeps the links busy; the second lets
    ranks drift apart by a round trip before they wait.
    """
    product_bytes = 0
    packet_bytes = frame_bytes(ip_version, lane_count)
    if len(fabric.hosts) > 1:
        path = longest_path(fabric, packet_bytes)
        product_bytes = bandwidth_delay_product_bytes(path, packet_bytes, packet_bytes)
        product_bytes += latencies_ps(path, switch_latency_ps) * path.rate_bps // (8 * PS_PER_S)
    return min(MAX_SLOTS * LANE_COUNT // lane_count, slots_of_product(product_bytes, packet_bytes))


def slots_of_product(product_bytes: int, packet_bytes: int) -> int:
    """Return the slots that hold two bandwidth-delay products of packets: a power of two, at least 16."""
    packets = max(16, -(-2 * product_bytes // packet_bytes))
    return 1 << (packets - 1).bit_length()
