"""How wide packets of in-network aggregation are where a scenario does not say: by the rate of hosts and the MTU."""

from __future__ import annotations

from typing import get_args

from weft.scenario.aggregation import LaneCount
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec
from weft.topologies.paths import serialisation_ps
from weft.traffic.aggregation_format import LANE_BYTES, LANE_COUNT, frame_bytes
from weft.traffic.header_sizes import ETHERNET

_IP_VERSION = 4
"""Both versions have as many lanes."""
_MOST_LANES = 256
"""Programs of 1,024 lanes take long to compile, and switches have but 256 slots of them."""
_LONGEST_PS = serialisation_ps(frame_bytes(_IP_VERSION, LANE_COUNT), 10**10)
"""A small message is one packet, which every link of a tree stores before it sends it on."""


def with_lanes(options: FabricOptions, fabric: FabricSpec) -> FabricOptions:
    """Return options that say how many lanes packets have: their own number, or the default on a fabric."""
    if options.aggregation.lanes is not None:
        return options
    counts_slots = options.slots or any(tenant.slots for tenant in options.tenants.values())
    rate_bps = min((nic.link.rate_bps for host in fabric.hosts for nic in host.nics[: fabric.training_nics]), default=0)
    fitting = [
        lanes
        for lanes in get_args(LaneCount)
        if lanes == LANE_COUNT or (not counts_slots and lanes <= _MOST_LANES and _fits(options, rate_bps, lanes))
    ]
    return options.changed(aggregation=options.aggregation.model_copy(update={"lanes": max(fitting)}))


def _fits(options: FabricOptions, rate_bps: int, lanes: int) -> bool:
    return (
        lanes * LANE_BYTES <= options.mtu_bytes
        and frame_bytes(options.ip_version, lanes) - ETHERNET <= options.link_mtu_bytes
        and rate_bps > 0
        and serialisation_ps(frame_bytes(_IP_VERSION, lanes), rate_bps) <= _LONGEST_PS
    )
