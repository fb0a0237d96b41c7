"""Circuits that change while a fabric runs: with drain nothing is lost, without it every lost packet is counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refused
from weft import Fabric
from weft.controller.circuits import CircuitChange
from weft.errors import BadInputError, WeftError
from weft.results.circuit_changes import CIRCUIT_CHANGES
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.topologies.kinds.torus import torus

US = 10**6
CORE = {
    "kind": "optical_core",
    "leaves": 8,
    "matchings": {"a": [0, 1, 2], "b": [0, 1, 3]},
    "planes": 1,
    "hosts_per_leaf": 1,
    "host_rate": "100Gb/s",
}
CUBES = {
    "kind": "cubes",
    "cube": 2,
    "shapes": {"long": [2, 2, 4], "wide": [2, 4, 2]},
    "planes": 1,
    "hosts_per_leaf": 1,
    "host_rate": "100Gb/s",
}
RING = {"collective": "allreduce", "algorithms": ["ring"], "sizes": ["2M"]}
SMALL = {"collective": "allreduce", "sizes": ["16K"]}


def run(fabric: dict[str, Any], traffic: list[dict[str, Any]], **options: Any) -> RunResult:
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": fabric, "traffic": traffic, **options}))


def changes_of(result: RunResult) -> list[CircuitChange]:
    return result.of(CIRCUIT_CHANGES)


def circuits(drain: bool, *at_us: int) -> dict[str, Any]:
    names = ("b", "a") * len(at_us)
    schedule = [{"at": f"{at}us", "configuration": name} for at, name in zip(at_us, names, strict=False)]
    return {"drain": drain, "dark_time": "20us", "schedule": schedule}


@pytest.mark.parametrize("latency", ["0us", "10us"])
def test_with_drain_no_packet_is_lost(latency: str) -> None:
    result = run(CORE, [RING], circuits=circuits(True, 20), control={"latency": latency})
    (change,) = changes_of(result)
    assert (change.outcome, change.rerouted, change.lost_packets) == ("changed", True, 0)
    assert (change.removed, change.added) == (4, 4)
    assert result.drops == {}
    assert result.ok
    assert change.began_ps >= 20 * US
    assert change.dark_ps is not None
    assert change.joined_ps is not None
    assert change.joined_ps - change.dark_ps == 20 * US
    end_ps = result.phases[-1].end_ps
    assert change.programmed_ps is not None
    assert change.programmed_ps < end_ps, "the all-reduce has gone on over the new circuits"


def test_without_drain_what_is_lost_is_counted_and_the_reduction_is_right() -> None:
    result = run(CORE, [RING], circuits=circuits(False, 20, 90))
    first, second = changes_of(result)
    assert (first.configuration, second.configuration) == ("b", "a")
    assert first.dark_ps == first.began_ps == 20 * US
    assert first.lost_packets > 0
    assert result.packet_conservation is not None
    assert sum(result.drops.values()) == first.lost_packets + second.lost_packets
    assert result.retransmissions > 0
    assert result.ok


def test_while_all_circuits_are_dark_there_are_no_routes() -> None:
    core = {**CORE, "matchings": {"a": [0, 1], "b": [2, 3]}}
    result = run(core, [RING], circuits=circuits(False, 20), control={"latency": "4us"})
    (change,) = changes_of(result)
    assert (change.removed, change.added) == (8, 8)
    lost = sum(number for why, number in result.drops.items() if why != "no_route")
    assert lost == change.lost_packets > 0
    assert result.packet_conservation is not None
    assert result.ok


def test_the_outcome_does_not_depend_on_the_number_of_workers() -> None:
    results = [
        run(CORE, [RING], circuits=circuits(False, 20, 90), workers=workers, observe={"drops": True})
        for workers in (1, 3)
    ]
    first, second = ((each.drops, changes_of(each), each.phases, each.planes) for each in results)
    assert first == second


def test_cubes_are_another_torus_between_two_phases() -> None:
    """The all-reduce after the change takes as long as on a fabric that has begun so."""
    routing = {"kind": "dimension_order"}
    options = {"dark_time": "20us"}
    result = run(CUBES, [SMALL, {"circuits": "wide"}, SMALL], routing=routing, circuits=options)
    (change,) = changes_of(result)
    assert (change.outcome, change.rerouted, change.lost_packets) == ("changed", False, 0)
    assert (result.ok, result.drops, result.retransmissions) == (True, {}, 0)
    assert {each.algorithm for each in result.collectives} >= {"ring", "in-network"}
    begun_so = run({**CUBES, "configuration": "wide"}, [SMALL], routing=routing)
    half = len(result.collectives) // 2
    for after, there in zip(result.collectives[half:], begun_so.collectives, strict=True):
        if after.algorithm != "in-network":
            assert after.time_ps == there.time_ps


def test_shortest_paths_follow_there_and_back() -> None:
    items = [SMALL, {"circuits": "wide"}, SMALL, {"circuits": "long"}, {"circuits": "long"}, SMALL]
    result = run(CUBES, items, circuits={"dark_time": "20us"})
    assert [each.outcome for each in changes_of(result)] == ["changed", "changed", "nothing to do"]
    assert (result.ok, result.drops) == (True, {})


def test_circuits_stay_if_they_are_busy_and_no_route_avoids_them() -> None:
    """All circuits go, so routes cannot avoid them, and an all-reduce uses them until the timeout."""
    result = run(
        {**CORE, "matchings": {"a": [0, 1], "b": [2, 3]}},
        [RING],
        circuits=circuits(True, 20),
        controller={"drain_timeout": "30us", "interval": "5us"},
    )
    (change,) = changes_of(result)
    assert (change.outcome, change.rerouted, change.dark_ps) == ("still busy", False, None)
    assert result.drops == {}
    assert not result.ok


def test_a_fabric_changes_circuits_from_python() -> None:
    fabric = parse_scenario({"fabric": CUBES}).fabric.build()
    with Fabric(fabric, clock="virtual") as running:
        change = running.change_circuits("wide", dark_time_ps=5 * US)
        assert change.joined_ps is not None
        assert change.dark_ps is not None
        assert change.joined_ps - change.dark_ps == 5 * US
        with refused(BadInputError, place="configuration", valid="long, wide"):
            running.change_circuits("no")
        with refused(BadInputError, place="dark_time_ps", valid="0 to 10s"):
            running.change_circuits("long", dark_time_ps=-1)
        with refused(BadInputError, valid="True, False, None", problem="drain: 'x'"):
            running.change_circuits("long", drain="x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fabric", "options", "message"),
    [
        (
            {"leaves": 2},
            {"circuits": circuits(True, 1)},
            {
                "place": "scenario: circuits.schedule[0].configuration",
                "valid": "fabrics of kind cubes or optical_core",
            },
        ),
        (
            {"leaves": 2},
            {"circuits": {"dark_time": "1us"}},
            {"place": "scenario: circuits", "valid": "fabrics of kind cubes or optical_core"},
        ),
        (
            {"leaves": 2},
            {"traffic": [{"circuits": "a"}]},
            {"place": "scenario: traffic[0].circuits", "valid": "fabrics of kind cubes or optical_core"},
        ),
        (
            CUBES,
            {"circuits": circuits(True, 1)},
            {"place": "scenario: circuits.schedule[0].configuration", "valid": "long, wide"},
        ),
        (
            CORE,
            {"pfc": {"classes": [3]}},
            {"place": "scenario: pfc.classes", "valid": "one configuration, such as a"},
        ),
        (
            CORE,
            {"controller": {"link_watch": {}}},
            {"place": "scenario: controller.link_watch", "valid": "one configuration"},
        ),
        (
            CORE,
            {"events": [{"link": "p0l0<->p0l7", "state": "down"}]},
            {"place": "scenario: events[0].link", "valid": "other links"},
        ),
        (
            CORE,
            {"events": [{"link": "p0l0<->p0l7", "state": "drained"}]},
            {"place": "scenario: events[0].link", "valid": "other links"},
        ),
    ],
)
def test_what_circuits_cannot_do_is_refused(
    fabric: dict[str, Any], options: dict[str, Any], message: dict[str, str]
) -> None:
    with refused(WeftError, **message):
        run(fabric, **{"traffic": [SMALL], **options})


def test_a_torus_has_no_circuits() -> None:
    with (
        Fabric(torus(shape=(2, 2)), clock="virtual") as running,
        refused(BadInputError, place="configuration", valid="fabrics of kind cubes or optical_core"),
    ):
        running.change_circuits("wide")
