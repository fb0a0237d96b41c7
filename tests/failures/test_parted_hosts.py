"""Runs between hosts that failed links keep apart for good: they fail at once, and say what is lost."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import EventSection, parse_scenario
from weft.traffic.patterns import Flow

FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gbps"}
PLANE_DOWN = {"plane": 0, "state": "down", "at": "20us"}
RING = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["1MiB"]}
WORKLOAD = {"workload": {"flow_sizes": "websearch", "load": 0.5, "duration": "300us"}}


def run(traffic: dict[str, Any], events: list[dict[str, Any]], **keys: Any) -> RunResult:
    scenario = {"clock": "virtual", "fabric": FABRIC, "traffic": [traffic], "events": events}
    return run_scenario(parse_scenario(scenario | keys))


@pytest.mark.parametrize("traffic", [RING, {"permutation": "1MiB"}, WORKLOAD], ids=["ring", "flows", "workload"])
def test_a_run_whose_only_plane_is_down_says_so(traffic: dict[str, Any]) -> None:
    with pytest.raises(CheckFailedError) as caught:
        run(traffic, [PLANE_DOWN])
    said = str(caught.value)
    assert re.search(r"run 1 failed: nothing joins h\d and h\d over NIC 0 \(and \d more pairs\)", said)
    assert "no scheduled event will; down: " in said
    assert re.search(r"h0<->p0l0.* and 4 more", said)


def test_a_host_without_a_link_is_named() -> None:
    with refused(CheckFailedError, problem="nothing joins h0 and h3"):
        run(
            {"incast": "h3", "bytes_per_sender": "1MiB"},
            [{"link": "h3<->p0l1", "state": "down", "at": "20us"}],
        )


@pytest.mark.parametrize("up_at", ["300us", "5s"])
def test_a_run_waits_for_a_link_that_is_to_come_up(up_at: str) -> None:
    result = run(RING, [PLANE_DOWN, PLANE_DOWN | {"state": "up", "at": up_at}])
    assert result.ok
    assert result.retransmissions > 0


def test_hosts_that_have_nothing_more_to_say_to_each_other_may_be_parted() -> None:
    """For three seconds nobody receives a packet, and both halves have flows to come."""
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=100e9)
    down = EventSection(link="p0l0<->p0s0", state="down", at=10**9)
    late_ps = 3 * 10**12
    flows = [Flow(0, 2, 10_000), Flow(0, 1, 10_000, start_ps=late_ps), Flow(3, 2, 10_000, start_ps=late_ps)]
    with Fabric(fabric, clock="virtual", events=[down]) as running:
        assert running.run_flows("two halves", flows).bytes_delivered == 30_000
        late = [Flow(0, 1, 10_000), Flow(0, 2, 10_000, start_ps=late_ps)]
        with refused(CheckFailedError, problem="run 2 failed: nothing joins h0"):
            running.run_flows("across", late)


def test_a_collective_on_two_lost_planes_fails_and_on_one_goes_on() -> None:
    fabric = FABRIC | {"planes": 2}
    one = run(RING, [PLANE_DOWN], fabric=fabric)
    assert one.ok
    with refused(CheckFailedError, problem="nothing joins h"):
        run(RING, [PLANE_DOWN, PLANE_DOWN | {"plane": 1, "at": "25us"}], fabric=fabric)
