"""Conservation in whole fabrics: runs are stopped at many instants, and nothing is missing at any of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.results.packet_conservation import checked_conservation
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import (
    BufferSection,
    ControlSection,
    CreditsSection,
    EventSection,
    FaultsSection,
    NicSection,
    PfcSection,
    SwitchingSection,
    parse_scenario,
)

US = 10**6
HELD = ("queued", "in_flight", "in_switches")
NOTHING = {"packets": 0, "bytes": 0}
EVENTS = [
    EventSection(link="p0l0<->p0s1", state="down", at=11 * US + 3),
    EventSection(link="p0s1<->p0l0", state="up", at=90 * US),
    EventSection(link="h1<->p0l0", state="down", at=25 * US),
    EventSection(link="h1<->p0l0", state="up", at=60 * US),
]


def leaf_spine(queue_capacity_bytes: int = 512 * 1024) -> Any:
    return topologies.leaf_spine(
        planes=1,
        leaves=2,
        spines=2,
        hosts_per_leaf=3,
        host_rate_bps=100 * 10**9,
        delay_ps=US,
        queue_capacity_bytes=queue_capacity_bytes,
    )


def incast(fabric: Fabric) -> None:
    fabric.incast("h0", 150_000)


def lengths(fabric: Fabric) -> None:
    fabric.permutation(200_000, data="lengths")


def in_network(fabric: Fabric) -> None:
    fabric.run(CollectiveRequest("allreduce", 600_000, "in-network"))


SCENARIOS = {
    "drops": (incast, 20_000, {}, {"queue full"}),
    "pfc": (
        incast,
        512 * 1024,
        {"buffer": BufferSection(capacity=600_000), "pfc": PfcSection(classes=[3], xoff=20_000)},
        set(),
    ),
    "too little headroom": (
        incast,
        512 * 1024,
        {
            "buffer": BufferSection(capacity=600_000),
            "pfc": PfcSection(classes=[3], xoff=20_000, headroom=1000),
        },
        {"queue no_headroom"},
    ),
    "faults": (
        lengths,
        512 * 1024,
        {"faults": FaultsSection(loss=0.01, duplicate=0.02, delay_probability=0.02, extra_delay=3 * US)},
        {"link lost"},
    ),
    "aggregation": (
        in_network,
        512 * 1024,
        {"faults": FaultsSection(loss=0.005)},
        {"link lost", "switch program_ingress"},
    ),
    "failures": (
        incast,
        512 * 1024,
        {"events": EVENTS, "control": ControlSection(latency=20 * US, detection=5 * US)},
        {"link cut", "queue down"},
    ),
    "failures with pfc": (
        incast,
        512 * 1024,
        {
            "events": EVENTS,
            "control": ControlSection(latency=20 * US, detection=5 * US),
            "buffer": BufferSection(capacity=600_000),
            "pfc": PfcSection(classes=[3], xoff=20_000),
        },
        {"link cut"},
    ),
    "failures with credits": (
        incast,
        512 * 1024,
        {
            "events": EVENTS,
            "control": ControlSection(latency=20 * US, detection=5 * US),
            "credits": CreditsSection(classes=[3]),
        },
        {"link cut"},
    ),
    "cut-through": (
        incast,
        60_000,
        {
            "events": EVENTS,
            "switching": SwitchingSection(mode="cut-through", latency=300_000),
            "faults": FaultsSection(bit_error_rate=1e-7),
        },
        {"link cut", "link corrupted"},
    ),
    "slow adapters": (incast, 512 * 1024, {"nic": NicSection(pcie_rate=64 * 10**9, dma_latency=US)}, set()),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_missing_at_any_instant(name: str, workers: int) -> None:
    traffic, capacity, options, expected = SCENARIOS[name]
    instants = random.Random(name).sample(range(200 * US), 80)
    seen: list[int] = []
    in_switches: list[int] = []
    with Fabric(leaf_spine(capacity), clock="virtual", workers=workers, seed=4, **options) as fabric:
        partitions = fabric.lab.partitions
        start_ps = partitions.now_ps

        def look() -> None:
            conservation = partitions.packet_conservation()
            for unit in ("packets", "bytes"):
                entered = sum(each[unit] for each in conservation["entered"].values())
                ended = sum(each[unit] for part in ("left", "dropped") for each in conservation[part].values())
                held = sum(conservation[where][unit] for where in HELD)
                assert entered + (conservation["resized_bytes"] if unit == "bytes" else 0) == ended + held
            assert conservation["missing"] == NOTHING
            held = sum(conservation[where]["packets"] for where in HELD)
            # Packets that adapters fetch ahead, or have not yet put into memory, are the hosts'.
            assert partitions.live_packets == held if name != "slow adapters" else held
            seen.append(held)
            in_switches.append(conservation["in_switches"]["packets"])

        for instant in instants:
            partitions.schedule_at(start_ps + instant, look)
        traffic(fabric)
        conservation = fabric.summary().packet_conservation
    assert len([held for held in seen if held]) > 10  # most instants are in the middle of something
    assert conservation is not None
    assert expected <= set(conservation.dropped)
    if not expected:
        assert conservation.dropped == {}
        assert conservation.entered["sent"] == conservation.left["delivered"]
    if "pfc" in name or "headroom" in name or "credits" in name:
        # Not every frame reaches its MAC: a failing link takes those on it.
        assert 0 < conservation.left["flow_control"].packets <= conservation.entered["flow_control"].packets
    assert any(in_switches) == (name == "cut-through")
    if name == "aggregation":
        assert conservation.entered["multicast"].packets > 0
    if name == "faults":
        assert conservation.entered["duplicated"].packets > 0


def test_results_have_packet_conservation() -> None:
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
        "traffic": [{"incast": "h0", "bytes_per_sender": "8KiB"}],
    }
    conservation = run_scenario(parse_scenario(scenario)).as_dict()["packet_conservation"]
    assert conservation["missing"] == conservation["queued"] == conservation["in_flight"] == NOTHING
    # 8 data packets and their acknowledgement.
    assert conservation["entered"]["sent"] == conservation["left"]["delivered"]
    assert conservation["entered"]["sent"]["packets"] >= 9


def test_a_run_that_loses_packets_unnoticed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual") as fabric:
        conservation = fabric.packet_conservation()
        assert conservation["missing"] == NOTHING
        broken: Any = {**conservation, "missing": {"packets": 2, "bytes": 300}}
        with refused(CheckFailedError, problem="2 packets and 300 B"):
            checked_conservation(broken)
        monkeypatch.setattr(fabric.lab, "packet_conservation", lambda: broken)
        with refused(CheckFailedError, problem="not conserved"):
            fabric.summary()
