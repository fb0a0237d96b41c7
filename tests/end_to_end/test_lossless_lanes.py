"""Lossless classes in several lanes on real interfaces: a frame's DSCP says in which it was sent."""

from __future__ import annotations

from typing import Any

import pytest
from example_fabrics import example, scenario_of

from weft import Fabric
from weft.errors import CheckFailedError
from weft.run.runner import run_scenario
from weft.scenario import CreditsSection, PfcSection, RoutingSection
from weft.topologies.kinds.torus import torus
from weft.traffic.patterns import Flow

pytestmark = [pytest.mark.mininet, pytest.mark.slow]
RING = 5
SIZE_BYTES = 60_000
DATA_LANES = (3, 4)
FLOWS = [Flow(host, (host + 2) % RING, SIZE_BYTES) for host in range(RING)]
"""Each link carries two of them. On one lane their packets come to wait for each other in a circle."""
CREDITS = CreditsSection(classes=[*DATA_LANES], buffer=2560)
PFC = PfcSection(classes=[*DATA_LANES], xoff=2560)


@pytest.mark.parametrize(
    ("name", "routing", "section"),
    [
        ("torus", "dimension_order", {"pfc": {"classes": [3, 4, 6, 7]}}),
        ("dragonfly", "dragonfly_minimal", {"credits": {"classes": [3, 4, 6, 7], "buffer": 8192}}),
    ],
    ids=["torus-pfc", "dragonfly-credits"],
)
def test_all_reduces_of_the_examples_lose_nothing(name: str, routing: str, section: dict[str, Any]) -> None:
    result = run_scenario(scenario_of(example(name), "real", routing, **section))
    assert result.ok
    assert {each.algorithm for each in result.collectives} >= {"ring", "in-network"}
    assert all(each.wrong == 0 and each.identical for each in result.collectives)
    assert all(each.retransmissions == 0 for each in result.collectives)


def lossless_ring(routing: str, **section: Any) -> Fabric:
    return Fabric(torus(shape=(RING,)), clock="real", dilation=1000, routing=RoutingSection(kind=routing), **section)


@pytest.mark.parametrize("section", [{"credits": CREDITS}, {"pfc": PFC}], ids=["credits", "pfc"])
def test_both_lanes_of_a_ring_are_used_and_lose_nothing(section: dict[str, Any]) -> None:
    with lossless_ring("dimension_order", **section) as ring:
        result = ring.run_flows("along the ring", FLOWS)
        switches = ring.lab.switch_stats()
    assert result.bytes_delivered == SIZE_BYTES * len(FLOWS)
    assert result.retransmissions == 0
    assert switches is not None
    used = dict.fromkeys(DATA_LANES, 0)
    for switch in switches["switches"].values():
        buffer = switch["buffer"]
        assert buffer is not None
        for port in buffer["ports"].values():
            assert sum(each["dropped_packets"] for each in port["ingress"]) == 0
            for lane in DATA_LANES:
                used[lane] = max(used[lane], port["ingress"][lane]["max_held_bytes"])
    assert all(most > 0 for most in used.values())


def test_on_one_lane_the_ring_waits_for_itself() -> None:
    """Every port along the ring holds packets and has no credit: the circle is closed, and stays so."""
    credits = CREDITS.model_copy(update={"allow_deadlock": True})
    with lossless_ring("dimension_order_one_lane", credits=credits) as ring:
        onward = {
            name: next(
                port.number for port in ring.topology.switch(name).ports if port.peer.node == f"p0n{(place + 1) % RING}"
            )
            for place, name in enumerate(f"p0n{place}" for place in range(RING))
        }
        with pytest.raises(CheckFailedError, match="did not finish"):
            ring.run_flows("along the ring", FLOWS, timeout_s=3)
        switches = ring.lab.switch_stats()
    assert switches is not None
    for name, number in onward.items():
        port = switches["switches"][name]["ports"][str(number)]
        assert port["transmit"]["queue_depth_packets"] > 0
        (lane,) = [each for each in port["mac"]["credits"]["lanes"] if each["priority_class"] == DATA_LANES[0]]
        assert lane["is_stalled"]
