"""Aggregation packets of several widths in virtual time: right sums, goodput in closed form, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks.endpoint_settings import default_slot_count
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest
from weft.scenario import AggregationSection
from weft.traffic.aggregation_format import frame_bytes

RATE_BPS = 100e9


def fabric(lanes: int, **options) -> Fabric:
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=RATE_BPS)
    return Fabric(spec, clock="virtual", aggregation=AggregationSection(lanes=lanes), **options)


def time_ps(shared: Fabric, lanes: int, packets: int) -> int:
    """Of an all-reduce of so many packets' worth of int32."""
    return shared.run(CollectiveRequest("allreduce", 4 * lanes * packets, "in-network", dtype="int32")).result.time_ps


@pytest.mark.parametrize(
    "lanes", [64, pytest.param(256, marks=pytest.mark.slow), pytest.param(1024, marks=pytest.mark.slow)]
)
def test_each_further_packet_takes_its_time_on_the_line(lanes):
    """So goodput tends to the share of lanes in a frame."""
    with fabric(lanes) as shared:
        few, many = (time_ps(shared, lanes, packets) for packets in (200, 500))
    frame_ps = frame_bytes(4, lanes) * 8 * 10**12 // int(RATE_BPS)
    assert many - few == 300 * frame_ps


@pytest.mark.slow
def test_sums_of_floats_are_the_same_bits_at_any_width():
    generator = np.random.default_rng(5)
    inputs = [generator.standard_normal(70_001).astype(np.float32) for _ in range(4)]
    sums = set()
    for lanes in (64, 128, 256, 1024):
        with fabric(lanes) as shared:
            ran = shared.run(CollectiveRequest("allreduce", inputs, "in-network"))
            assert ran.result.ok
            sums.add(ran.buffers[0].tobytes())
    assert len(sums) == 1


def test_results_name_the_lanes():
    with fabric(128) as shared:
        shared.run(CollectiveRequest("allreduce", 4096, "in-network"))
        made_by = shared.summary().made_by
    assert made_by.parameters["aggregation"]["lanes"] == 128
    assert made_by.parameters["effective"]["largest_frame_bytes"] >= frame_bytes(4, 128)


@pytest.mark.parametrize(("lanes", "link_mtu", "needed"), [(1024, 4000, 4168), (256, 1280, None), (1024, 4168, None)])
def test_packets_that_links_do_not_carry_are_refused(lanes, link_mtu, needed):
    if needed is None:
        fabric(lanes, link_mtu_bytes=link_mtu)
        return
    with refused(BadInputError, place="aggregation.lanes", valid="at most 4000 B, which is link_mtu"):
        fabric(lanes, link_mtu_bytes=link_mtu)


def test_full_packets_that_links_do_not_carry_are_refused():
    with refused(BadInputError, place="mtu", valid="at most 1500 B, which is link_mtu"):
        fabric(64, mtu_bytes=4096, link_mtu_bytes=1500)


def test_wide_packets_need_fewer_slots():
    spec = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=400e9, delay_ps=10**6)
    counts = [default_slot_count(spec, 4, 0, lanes) for lanes in (64, 128, 256, 1024)]
    assert counts == sorted(counts, reverse=True)
    assert all(count * lanes <= 4096 * 64 for count, lanes in zip(counts, (64, 128, 256, 1024), strict=True))
