"""Links and hosts that lose packets are found by the counters of both ends, and healthy ones are left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bench_link_watch as bench
import pytest

from weft import Fabric, topologies
from weft.controller.elements import Element, link_element
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import (
    ControllerSection,
    FaultsOfLinks,
    FaultsSection,
    LinkWatchSection,
    TransportSection,
    parse_scenario,
)

US = 10**6
WATCH = ControllerSection(link_watch=LinkWatchSection(loss=0.002, least_packets=500), interval=20 * US)
LOSSY = FaultsSection(links=[FaultsOfLinks(link="h1->p0l0", loss=0.01)])


def kinds_and_elements(result: RunResult) -> list[tuple[str, str]]:
    return [(event.kind, event.element) for event in result.controller_events if event.kind != "programmed"]


@pytest.mark.parametrize("seed", [1, 2])
def test_links_with_many_small_packets_are_not_lossy(seed: int) -> None:
    """More acknowledgements are on a link of 400 Gb/s and 5 µs than packets of mean size."""
    scenario = {
        "clock": "virtual",
        "seed": seed,
        "fabric": {
            "planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "host_rate": "400Gb/s", "delay": "5us",
        },
        "traffic": [{"workload": {"flow_sizes": "fb_hadoop", "load": 0.5, "duration": "600us"}}],
        "transport": {"retransmission": "selective-repeat", "path": "spray"},
        "controller": {"link_watch": {}},
    }  # fmt: skip
    assert run_scenario(parse_scenario(scenario)).controller_events == []


def test_healthy_links_are_left_alone() -> None:
    outcome = bench.healthy_runs(8, seed=2)
    assert outcome.runs == outcome.of_traffic.total() == 8
    assert outcome.packets > 0
    assert outcome.found == []


@pytest.mark.parametrize("direction", ["p0l0->p0s1", "p0s1->p0l0", "h3->p0l0", "p0l1->h5"])
def test_a_loss_of_one_percent_is_found_within_a_millisecond_and_no_other(direction: str) -> None:
    found = bench.lossy_run(direction, seed=1, leaves=2)
    assert found.found_us is not None
    assert found.found_us <= 1000
    assert found.others == ()


@pytest.mark.parametrize("kind", ["leaf/spine, 400 Gb/s, 5 µs", "dragonfly"])
@pytest.mark.parametrize("settings", ["segments", "cut-through", "slow switches", "a controller far away"])
def test_what_is_on_the_way_is_not_lost(kind: str, settings: str) -> None:
    case: dict[str, Any] = {"clock": "virtual", "controller": bench.STRICTEST}
    case |= bench.FABRICS[kind] | bench.SETTINGS[settings] | {"traffic": [bench.TRAFFIC["permutation"]]}
    assert run_scenario(parse_scenario(case)).controller_events == []


def test_a_spare_takes_the_rank_of_a_host_that_loses_packets() -> None:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=10**10)
    with Fabric(topologies.with_spares(topology), clock="virtual", faults=LOSSY, controller=WATCH) as fabric:
        lossy, clean = (fabric.run(CollectiveRequest("allreduce", 1_000_000, "ring")).result for _ in range(2))
        result = fabric.summary()
    assert kinds_and_elements(result) == [("lossy", "h1<->p0l0"), ("cordoned", "h1"), ("swapped", "h1")]
    assert lossy.retransmissions > 0
    assert clean.retransmissions == 0
    assert clean.time_ps < lossy.time_ps


@pytest.fixture
def watched() -> Iterator[Fabric]:
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=10**10)
    with Fabric(
        topology,
        clock="virtual",
        faults=LOSSY,
        controller=WATCH,
        transport=TransportSection(retransmission="selective-repeat"),
    ) as fabric:
        yield fabric


def test_a_host_that_loses_packets_and_has_no_spare_is_reported_once(watched: Fabric) -> None:
    def link() -> Element:
        return link_element(watched.topology, watched.topology.link_between("h1", "p0l0"))

    operations, call = watched.lab.operations, watched.lab.controller.call
    watched.permutation(1_500_000)
    reported = [("lossy", "h1<->p0l0"), ("kept in use", "h1<->p0l0")]
    assert kinds_and_elements(watched.summary()) == reported
    (faulty,) = operations.faulty_in_use
    assert (faulty.kind, faulty.link) == ("lossy", link().link)
    assert faulty.detail.startswith("h1 → p0l0: ")
    call(operations.restore(link()))
    assert operations.faulty_in_use == ()
    watched.permutation(1_500_000)
    assert kinds_and_elements(watched.summary()) == [*reported, ("restored", "h1<->p0l0"), *reported]


def test_a_link_of_a_host_below_its_rate_is_reported() -> None:
    scenario = {
        "clock": "virtual",
        "fabric": {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "10Gb/s"},
        "events": [{"link": "h1<->p0l0", "state": "slow", "rate": "2Gb/s", "at": "10us"}],
        "traffic": [{"permutation": "1MiB", "data": "lengths"}],
        "transport": {"congestion_control": "dcqcn", "retransmission": "selective-repeat"},
        "controller": {"link_watch": {"slow": 0.8}},
    }
    result = run_scenario(parse_scenario(scenario))
    assert kinds_and_elements(result) == [("slow", "h1<->p0l0"), ("kept in use", "h1<->p0l0")]


@pytest.mark.parametrize(
    ("period", "interval", "control"),
    [
        ("20us", "30us", {}),  # it is up again when it is read
        ("250us", "10us", {"detection": "100us"}),  # it is read before anybody knows
    ],
)
def test_what_a_link_loses_as_it_fails_does_not_make_it_lossy(
    period: str, interval: str, control: dict[str, str]
) -> None:
    scenario = {
        "clock": "virtual",
        "fabric": {
            "planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gb/s", "delay": "5us",
        },
        "events": [
            {"link": "p0l0<->p0s1", "state": "flapping", "count": 3, "period": period, "at": "21us"}
        ],
        "traffic": [{"permutation": "4MiB", "data": "lengths"}],
        "transport": {"retransmission": "selective-repeat", "path": "spray"},
        "control": control,
        "controller": bench.STRICTEST | {"interval": interval},
    }  # fmt: skip
    result = run_scenario(parse_scenario(scenario))
    assert result.drops
    assert set(kinds_and_elements(result)) == {("link down", "p0l0<->p0s1"), ("link up", "p0l0<->p0s1")}
