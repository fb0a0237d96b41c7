"""All-reduce by the switches inside hosts and the fabric's switches: NCCL's NVLS of several hosts, with IB SHARP.

A host's switch leaves each rank one chunk. The fabric's switches add up the chunks of ranks with the same number on all
hosts, and each host's switch multicasts the results. A NIC carries 1/n of the data, for hosts of n ranks.
"""

from __future__ import annotations

from weft.traffic.costs import Cost, Links, nic_bytes
from weft.traffic.lane_schedule import LaneSchedule
from weft.traffic.schedules.hierarchical_in_network import aggregate_between
from weft.traffic.schedules.in_network import aggregation_cost
from weft.traffic.schedules.nvls import all_reduce_by_switch_and, with_inside_cost
from weft.traffic.schedules.spec import CollectiveSpec


def nvls_in_network_all_reduce(spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """All-reduce in the host's switch, in the network by rail, and by multicast in the host."""
    return all_reduce_by_switch_and(aggregate_between, spec, rank, scratch_bytes=0, streams=spec.trees)


def nvls_in_network_cost(spec: CollectiveSpec, links: Links) -> Cost:
    """One step through the rail's trees, while hosts' switches work."""
    share_bytes = nic_bytes(spec) / spec.host_size
    return with_inside_cost(spec, links, aggregation_cost(spec, links, share_bytes, spec.host_count))
