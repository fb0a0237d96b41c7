"""results.json has the effective value of every parameter, including those left at their defaults."""

import json

import pytest

from weft import topologies
from weft.engine import congestion_control_kind, congestion_control_names
from weft.run.fabric import Fabric
from weft.scenario import parse_scenario

TOPOLOGY = topologies.leaf_spine(
    planes=2, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**11, fabric_rate_bps=4 * 10**11
)


def effective(tree):
    options = {key: getattr(parse_scenario(tree), key) for key in tree}
    with Fabric(TOPOLOGY, clock="virtual", **options) as fabric:
        return json.loads(json.dumps(fabric.summary().as_dict()))["made_by"]["effective"]


@pytest.mark.parametrize("name", congestion_control_names())
def test_every_parameter_of_the_congestion_control_has_its_value(name):
    transport = effective({"transport": {"congestion_control": name}})["transport"]
    assert transport["congestion_control"] == name
    assert (transport["preset"] is None) == (name != "dcqcn")
    assert len(transport["planes"]) == 2
    for plane in transport["planes"]:
        declared = congestion_control_kind(name).parameters
        assert {*plane["parameters"]} == {parameter.name for parameter in declared}
        assert all(value >= 0 for value in plane["parameters"].values())
        assert plane["line_rate_bps"] == 10**11
        assert 0 < plane["base_round_trip_ps"] < plane["least_retransmission_timeout_ps"]


def test_what_is_given_is_in_force():
    given = {
        "congestion_control": "dcqcn",
        "preset": "paper-2015",
        "parameters": {"increase_timer": "300us"},
        "ack_interval": 3,
        "cnp_interval": "7us",
        "retransmission": "selective-repeat",
        "path": "spray",
        "spray_paths": 16,
    }
    transport = effective({"transport": given})["transport"]
    assert transport["preset"] == "paper-2015"
    assert transport["planes"][0]["parameters"]["increase_timer_ps"] == 300_000_000
    assert (transport["ack_interval_packets"], transport["cnp_interval_ps"]) == (3, 7_000_000)
    assert (transport["path"], transport["spray_paths"]) == ("spray", 16)
    assert transport["planes"][0]["reordering_window_ps"] > 0


def test_thresholds_are_those_of_every_rate():
    found = effective({})
    assert [(each["rate_bps"], each["kmin_bytes"], each["kmax_bytes"], each["pmax"]) for each in found["ecn"]] == [
        (10**11, 400_000, 1_600_000, 0.2),
        (4 * 10**11, 1_600_000, 6_400_000, 0.2),
    ]
    assert found["ecn"][0]["at"] == "dequeue"
    assert found["buffer"] == found["pfc"] == found["credits"] == []
    assert sum(each["ports"] for each in found["queues"]) == 16
    given = effective({"ecn": {"kmin": "5KB", "kmax": "200KB", "pmax": 0.01, "at": "enqueue"}})["ecn"]
    assert {(each["kmin_bytes"], each["kmax_bytes"], each["pmax"], each["at"]) for each in given} == {
        (5000, 200_000, 0.01, "enqueue")
    }


def test_defaults_of_buffer_and_flow_control_are_spelled_out():
    found = effective({"buffer": {"capacity": "8MiB"}, "pfc": {"classes": [3]}})
    (buffer,) = found["buffer"]
    assert buffer == {
        "switches": 6, "capacity_bytes": 8 << 20, "alpha": [1.0] * 8, "reserved_bytes": [0] * 8,
    }  # fmt: skip
    assert {each["rate_bps"] for each in found["pfc"]} == {10**11, 4 * 10**11}
    for each in found["pfc"]:
        assert each["classes"] == [3]
        assert each["alpha"] == 0.125
        assert each["headroom_bytes"] > each["hysteresis_bytes"] == 2 * found["largest_frame_bytes"]
