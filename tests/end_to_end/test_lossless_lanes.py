"""Lossless classes in several lanes on real interfaces: a frame's DSCP says in which it was sent."""

from __future__ import annotations

from typing import Any

import pytest
from example_fabrics import example, scenario_of

from weft import Fabric
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


@pytest.mark.parametrize("section", [{"credits": CREDITS}, {"pfc": PFC}], ids=["credits", "pfc"])
def test_both_lanes_of_a_ring_hold_back_and_lose_nothing(section: dict[str, Any]) -> None:
    with Fabric(
        torus(shape=(RING,)),
        clock="real",
        dilation=1000,
        routing=RoutingSection(kind="dimension_order"),
        **section,
    ) as ring:
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
