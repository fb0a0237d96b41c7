"""Sizes of the largest frames on a fabric's links."""

from __future__ import annotations

from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, longest_path
from weft.traffic import aggregation_format, header_sizes


def int_md_bytes(fabric: FabricSpec, options: FabricOptions) -> int:
    """Return the most that INT-MD adds to a packet on a link; the last switch removes it."""
    if not options.telemetry.is_on:
        return 0
    switches = max(len(longest_path(network).nodes) - 2 for network in fabric.networks)
    return options.telemetry.largest_growth_bytes(switches - 1)


def outer_header_bytes(options: FabricOptions) -> int:
    """Return the bytes of the outer header around packets of the hosts' transport."""
    routes = options.routing.ev_routes
    return header_sizes.IP[6] if routes is not None and routes.encapsulates else 0


def write_frame_bytes(options: FabricOptions, added_bytes: int) -> int:
    """Return the largest frame of an RDMA WRITE, on any link; `added_bytes` by INT-MD."""
    routing = options.routing
    shim_bytes = header_sizes.VALIANT_SHIM if routing.has_intermediates else 0
    outer_bytes = outer_header_bytes(options)
    return (
        shim_bytes + outer_bytes + added_bytes + header_sizes.largest_frame_bytes(options.ip_version, options.mtu_bytes)
    )


def any_frame_bytes(options: FabricOptions, added_bytes: int) -> int:
    """Return the largest frame on any link, of a WRITE or of in-network aggregation; `added_bytes` by INT-MD."""
    reducing_bytes = aggregation_format.frame_bytes(options.ip_version, options.aggregation.lane_count)
    return max(write_frame_bytes(options, added_bytes), reducing_bytes)
