"""A fabric's latencies and rates for the cost model of algorithms (`weft.traffic.costs.Links`)."""

from __future__ import annotations

from weft.quantities.units import PS_PER_S
from weft.scenario import FabricOptions
from weft.topologies import FabricSpec, TopologyError, longest_path, one_way_ps
from weft.topologies.paths import Path
from weft.traffic.aggregation_format import LANE_BYTES, frame_bytes
from weft.traffic.costs import Links, Wire
from weft.traffic.header_sizes import overhead_bytes

_NO_TIME = Wire(0.0, 0.0)


def fabric_links(fabric: FabricSpec, options: FabricOptions) -> Links:
    """Return the links of the longest path between two hosts; zeros for a single host, which sends nothing."""
    inside = _NO_TIME
    if (scale_up := fabric.scale_up) is not None:
        inside = Wire(scale_up.latency_ps, 8 * PS_PER_S / scale_up.rate_bps)
    try:
        path = longest_path(fabric, options.mtu_bytes)
    except TopologyError:
        return Links(_NO_TIME, inside, _NO_TIME)
    planes = fabric.nics_per_host if options.transport.kind.spans_planes else 1
    return Links(_between(path, options, planes), inside, _aggregation(path, options))


def _between(path: Path, options: FabricOptions, planes: int) -> Wire:
    """Return the way from rank to rank, whose packets so many planes share."""
    header_bytes = overhead_bytes(options.ip_version, int_telemetry=options.int_telemetry)
    header_bytes += options.transport.kind.extension_bytes
    per_bit_ps = [PS_PER_S / hop.link.rate_bps for hop in path.hops]
    size_bytes = options.mtu_bytes
    return Wire(
        latency_ps=_idle_ps(path, header_bytes, options) + options.adapters_round_trip_ps(0) / 2,
        ps_per_byte=8 * per_bit_ps[0] * (size_bytes + header_bytes) / size_bytes / planes,
        stored_ps_per_byte=8 * sum(per_bit_ps[1:]),
        packet_bytes=size_bytes,
    )


def _aggregation(path: Path, options: FabricOptions) -> Wire:
    """Return the link of an aggregation: up to the root and down is as long as the path to the farthest host."""
    lanes = options.aggregation.lane_count
    packet_bytes = frame_bytes(options.ip_version, lanes)
    rate_bps = path.hops[0].link.rate_bps
    return Wire(
        latency_ps=_idle_ps(path, packet_bytes, options),
        ps_per_byte=8 * PS_PER_S * packet_bytes / rate_bps / (lanes * LANE_BYTES),
    )


def _idle_ps(path: Path, frame_bytes: int, options: FabricOptions) -> int:
    return one_way_ps(path, frame_bytes) + (len(path.nodes) - 2) * options.switching.latency
