"""Hosts that are out of use, whose ranks spares take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, CheckFailedError, Fabric, topologies
from weft.results.collectives import CollectiveResult
from weft.results.run_result import RunResult
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import ControlSection, EventSection, load_scenario, parse_scenario
from weft.topologies import TopologyError

US, MS = 10**6, 10**9
RANKS = 4
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(
    events: list[EventSection],
    algorithm: str = "ring",
    runs: int = 2,
    spares: int = 2,
    detection: int = US,
    lost_between: tuple[str, ...] = (),
) -> tuple[list[CollectiveResult], RunResult]:
    """All-reduce integers of four ranks so often, verified; links to `lost_between` fail as the second time begins."""
    network = topologies.leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=(RANKS + spares) // 2)
    generator = np.random.default_rng(1)
    inputs = [generator.integers(-1000, 1000, 1 << 14).astype(np.int32) for _ in range(RANKS)]
    with Fabric(
        topologies.with_spares(network, spares),
        clock="virtual",
        events=events,
        control=ControlSection(latency=5 * US, detection=detection),
    ) as fabric:
        results = []
        for number in range(runs):
            for leaf in lost_between if number == 1 else ():
                fabric.schedule_link("h1", leaf, "down", US)
            results.append(fabric.run(CollectiveRequest("allreduce", inputs, algorithm)).result)
        return results, fabric.summary()


def host(name: str, state: str, at_us: int | None = None) -> EventSection:
    return EventSection(host=name, state=state, at=None if at_us is None else at_us * US)


def of_hosts(result: RunResult) -> list[tuple[str, str, str]]:
    kinds = ("host lost", "host found", "swapped", "cordoned", "restored")
    return [(event.kind, event.element, event.detail) for event in result.controller_events if event.kind in kinds]


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving-doubling", "in-network"])
def test_a_spare_takes_the_rank_of_a_cordoned_host(algorithm: str) -> None:
    results, result = run([host("h1", "cordoned", 30)], algorithm)
    assert all(each.ok and each.ranks == RANKS for each in results)
    assert of_hosts(result) == [("cordoned", "h1", ""), ("swapped", "h1", "h4 has rank 1")]
    assert result.drops == {}


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
@pytest.mark.parametrize("at_us", [15, 30, 50])
def test_a_collective_whose_host_dies_runs_again_with_a_spare(algorithm: str, at_us: int) -> None:
    results, result = run([host("h1", "down", at_us)], algorithm)
    assert all(each.ok for each in results)
    assert of_hosts(result) == [("host lost", "h1", ""), ("swapped", "h1", "h4 has rank 1")]
    assert result.packet_conservation is not None
    assert result.packet_conservation.missing.packets == 0


@pytest.mark.parametrize("at_us", [0, 1, 2])
def test_a_spare_takes_the_rank_of_a_host_that_dies_while_its_job_is_programmed(at_us: int) -> None:
    results, result = run([host("h1", "down", at_us)], "in-network")
    assert all(each.ok for each in results)
    assert of_hosts(result) == [("host lost", "h1", ""), ("swapped", "h1", "h4 has rank 1")]


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
@pytest.mark.parametrize("detection", [0, 100 * MS], ids=["at once", "100ms"])
def test_a_spare_takes_the_rank_of_a_host_that_dies_between_runs(algorithm: str, detection: int) -> None:
    results, result = run([], algorithm, detection=detection, lost_between=("p0l0", "p1l0"))
    assert all(each.ok for each in results)
    assert of_hosts(result) == [("host lost", "h1", ""), ("swapped", "h1", "h4 has rank 1")]


def test_a_host_that_has_lost_one_of_its_links_is_no_lost_host() -> None:
    results, result = run([], "in-network", lost_between=("p0l0",))
    assert all(each.ok for each in results)
    assert of_hosts(result) == []


def test_spares_take_ranks_one_after_the_other_and_hosts_that_are_back_are_spares() -> None:
    events = [host("h1", "down"), host("h4", "cordoned"), host("h1", "up", 60), host("h5", "down", 120)]
    results, result = run(events, runs=4)
    assert all(each.ok for each in results)
    assert [each for each in of_hosts(result) if each[0] == "swapped"] == [
        ("swapped", "h1", "h5 has rank 1"),
        ("swapped", "h5", "h1 has rank 1"),
    ]


FLOWS: list[dict[str, object]] = [
    {"permutation": "256KiB"},
    {"incast": "h1", "bytes_per_sender": "256KiB"},
    {"workload": {"flow_sizes": "websearch", "load": 0.5, "duration": "1ms"}},
]


def flows_with_spares(item: dict[str, object], **event: object) -> RunResult:
    scenario = {
        "clock": "virtual",
        "fabric": {"leaves": 2, "spines": 1, "hosts_per_leaf": 3, "spares": 2},
        "traffic": [item],
        "events": [event] if event else [],
        "control": {"detection": "1us", "latency": "5us"},
    }
    return run_scenario(parse_scenario(scenario))


def ends_of(result: RunResult) -> set[str]:
    (kind,) = (each for each in result.traffic.values() if each)
    table = kind[0].records
    return {f"h{index}" for end in ("source", "destination") for index in table[end].tolist()}


@pytest.mark.parametrize("item", FLOWS, ids=lambda item: next(iter(item)))
def test_flows_are_between_hosts_with_ranks(item: dict[str, object]) -> None:
    assert ends_of(flows_with_spares(item)) == {"h0", "h1", "h2", "h3"}


@pytest.mark.parametrize("item", FLOWS, ids=lambda item: next(iter(item)))
def test_flows_of_a_host_that_is_out_of_use_are_a_spares(item: dict[str, object]) -> None:
    result = flows_with_spares(item, host="h1", state="cordoned")
    assert ("swapped", "h1") in {(kind, element) for kind, element, _ in of_hosts(result)}
    assert ends_of(result) == {"h0", "h2", "h3", "h4"}


@pytest.mark.parametrize("item", FLOWS, ids=lambda item: next(iter(item)))
def test_flows_of_a_host_that_dies_run_again(item: dict[str, object]) -> None:
    result = flows_with_spares(item, host="h1", state="down", at="20us")
    assert result.ok
    assert ends_of(result) == {"h0", "h2", "h3", "h4"}


def test_without_a_spare_left_nothing_is_taken_out_of_use() -> None:
    with refused(CheckFailedError, problem="no spare host is left that"):
        run([host("h0", "cordoned")], spares=0)


def test_without_a_spare_left_a_host_that_dies_ends_the_run() -> None:
    with refused(CheckFailedError, problem="run 1 failed"):
        run([host("h0", "down", 30)], spares=0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"fabric": {"leaves": 2, "spines": 1, "hosts_per_leaf": 1, "spares": 2}},
            {"place": "scenario: fabric.spares", "valid": "fewer"},
        ),
        (
            {"fabric": {"leaves": 2, "spines": 1, "ranks_per_host": 2, "spares": 1}},
            {"place": "scenario: fabric.spares", "valid": "without ranks_per_host"},
        ),
        ({"traffic": [{"ping": ["h0->h1"]}]}, {"place": "scenario: fabric.spares", "valid": "0"}),
        (
            {"traffic": [{"tcp": [{"flow": "h0->h1", "size": "1KiB"}]}]},
            {"place": "scenario: fabric.spares", "valid": "0"},
        ),
        ({"traffic": [{"incast": "h3"}]}, {"place": "scenario: traffic[0].incast", "valid": "a host with a rank"}),
        ({"observe": {"flows": True}}, {"place": "scenario: observe", "valid": "without fabric.spares"}),
        (
            {"events": [{"host": "h9", "state": "down"}]},
            {"place": "scenario: events[0].host", "problem": "no host 'h9'"},
        ),
        (
            {"events": [{"host": "h9", "state": "cordoned"}]},
            {"place": "scenario: events[0].host", "valid": "h0, h1, h2, h3"},
        ),
    ],
)
def test_what_spares_do_not_go_with_is_refused(change: dict[str, object], words: dict[str, str]) -> None:
    scenario = {
        "clock": "virtual",
        "fabric": {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "spares": 1},
        "traffic": [{"collective": "allreduce"}],
    }
    with refused(BadInputError, **words):
        run_scenario(parse_scenario(scenario | change))


def test_a_fabric_is_built_again_with_its_spares() -> None:
    fabric = topologies.with_spares(topologies.leaf_spine(), 1)
    assert topologies.from_parameters(fabric.parameters) == fabric
    assert fabric.rank_count == len(fabric.hosts) - 1
    with refused(TopologyError, valid="0 to 7", problem="spares"):
        topologies.with_spares(topologies.leaf_spine(), 8)


@pytest.mark.parametrize("example", ["lost_plane", "spare_host"])
def test_the_examples_run_as_they_say(example: str) -> None:
    result = run_scenario(load_scenario(EXAMPLES / f"{example}.yaml"))
    assert all(each.ok for each in result.collectives)
    kinds = [event.kind for event in result.controller_events]
    assert ("plane lost" in kinds, "swapped" in kinds) == (example == "lost_plane", example == "spare_host")
