"""How wide aggregation packets are by default, and what sums of floats take with them."""

from __future__ import annotations

import numpy as np
import pytest

from weft import Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.spec import fabric_run_spec, run_spec
from weft.scenario import AggregationSection, parse_scenario
from weft.scenario.tenants import TenantSection
from weft.topologies import with_scale_up
from weft.traffic.data_types import DataType, elements_of


def two_leaves(rate_bps: float, **arguments):
    return topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=rate_bps, **arguments)


@pytest.mark.parametrize(
    ("rate_bps", "options", "lanes"),
    [
        (10e9, {}, 64),
        (17e9, {}, 64),
        (25e9, {}, 128),
        (40e9, {}, 256),
        (400e9, {"mtu_bytes": 4096}, 256),
        (400e9, {"mtu_bytes": 512}, 128),
        (400e9, {"mtu_bytes": 256}, 64),
        (400e9, {"mtu_bytes": 256, "ip_version": 6, "link_mtu_bytes": 1280}, 64),
        (400e9, {"aggregation": AggregationSection(lanes=64)}, 64),
        (400e9, {"slots": 2000}, 64),
        (400e9, {"tenants": {"blue": TenantSection(slots=4096)}}, 64),
        (400e9, {"tenants": {"blue": TenantSection(bandwidth=0.5)}}, 256),
        (1e9, {"aggregation": AggregationSection(lanes=1024)}, 1024),
    ],
)
def test_packets_are_as_wide_as_rate_and_mtu_allow(rate_bps, options, lanes):
    spec = fabric_run_spec(two_leaves(rate_bps), clock="virtual", **options)
    assert spec.options.aggregation.lanes == lanes


def test_the_slowest_host_decides_and_the_program_is_compiled_for_it():
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2, "host_rate": "100Gb/s"},
    }
    assert run_spec(parse_scenario(scenario)).options.macros == {"AGGREGATION_LANES": "256"}
    scenario["fabric"]["host_rate"] = "10Gb/s"
    assert run_spec(parse_scenario(scenario)).options.macros == {}


def test_exponents_hold_no_data_up_however_long_a_round_trip_takes():
    """Links of 5 µs: 64 packets of data are a twentieth of what is under way."""
    with Fabric(two_leaves(100e9, delay_ps=5_000_000), clock="virtual") as fabric:
        integers, floats = (
            fabric.run(CollectiveRequest("allreduce", 1 << 20, "in-network", dtype=dtype)).result.time_ps
            for dtype in ("int32", "float32")
        )
    assert floats < 1.35 * integers


@pytest.mark.parametrize("dtype", [DataType.FLOAT16, DataType.BFLOAT16])
def test_sums_of_16_bit_floats_take_half_as_long_and_are_within_their_bound(dtype):
    generator = np.random.default_rng(4)
    inputs = [elements_of(generator.standard_normal(60_001), dtype) for _ in range(4)]
    with Fabric(two_leaves(10e9), clock="virtual") as fabric:
        run = fabric.run(CollectiveRequest("allreduce", inputs, "in-network"))
        wide = fabric.run(CollectiveRequest("allreduce", 4 * 60_001, "in-network", dtype="float32")).result
        assert run.result.ok
        assert run.result.wrong == 0
        assert run.result.time_ps < 0.6 * wide.time_ps
    assert len({each.tobytes() for each in run.buffers}) == 1


def test_rings_lose_where_switches_sum_16_bit_floats():
    with Fabric(two_leaves(10e9), clock="virtual") as fabric:
        ring, switches = (
            fabric.run(CollectiveRequest("allreduce", 256 << 10, algorithm, dtype="bfloat16")).result.time_ps
            for algorithm in ("ring", "in-network")
        )
    assert switches < ring


def test_rails_pack_by_the_number_of_hosts_that_they_join():
    """A sum of all 32 ranks would leave float16 no room; a rail's 4 hosts do, and the bound is of what they send."""
    leaves = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=16, host_rate_bps=10e9)
    spec = with_scale_up(leaves, 8)
    generator = np.random.default_rng(5)
    inputs = [generator.standard_normal(5000).astype(np.float16) for _ in range(spec.rank_count)]
    with Fabric(spec, clock="virtual") as fabric:
        result = fabric.run(CollectiveRequest("allreduce", inputs, "hierarchical-in-network")).result
    assert result.ok
    assert 0 < result.largest_error < result.error_bound
