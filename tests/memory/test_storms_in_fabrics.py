"""A NIC that pauses without end in a fabric of eight hosts: whom it stops, and what the PFC watchdog changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from weft import topologies
from weft.errors import BadInputError, CheckFailedError, DeadlockError, EnvironmentLacksError
from weft.results.limits import limits_of
from weft.results.limits.evidence import Evidence
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.scenario.link_checks import check_events
from weft.scenario.options import FabricOptions

BROKEN = 7
STORM = {"host": "h7", "state": "storming", "at": "20us"}
ENDING = STORM | {"until": "1500us"}
WATCHDOG = {"detection_time": "150us", "restoration_time": "100us"}
TREE: dict[str, Any] = {
    "clock": "virtual",
    "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "host_rate": "100Gb/s", "delay": "1us"},
    "buffer": {"capacity": "2MiB"},
    "seed": 5,  # h0 sends to h7, over the same uplink as two others
    "transport": {"parameters": {"window": "1MiB"}},
    "traffic": [{"permutation": "1MiB", "data": "lengths"}],
}


def run(*events: dict[str, str], watchdog: dict[str, str] | None = None, **keys: Any) -> RunResult:
    pfc: dict[str, Any] = {"classes": [3], "xoff": "50KB"}
    return run_scenario(
        parse_scenario(
            TREE | {"pfc": pfc | ({"watchdog": watchdog} if watchdog else {}), "events": list(events)} | keys
        )
    )


def completions_us(result: RunResult) -> tuple[list[float], list[float]]:
    """Return when flows ended that have nothing to do with the broken host, and when its own did."""
    records = result.flows[0].records
    own = (records["source"] == BROKEN) | (records["destination"] == BROKEN)
    times = records["completion_ps"] / 1e6
    return sorted(times[~own].tolist()), sorted(times[own].tolist())


def test_a_storm_stops_others_and_the_watchdog_lets_them_go_on() -> None:
    healthy, _ = completions_us(run())
    stopped, _ = completions_us(run(ENDING))
    spared_run = run(ENDING, watchdog=WATCHDOG)
    spared, own = completions_us(spared_run)
    # Without it the storm holds a victim until it ends; with it, until the watchdog has found it.
    assert max(healthy) < 200
    assert max(stopped) > 1500
    assert max(spared) < 400
    assert max(own) > 1500
    (found,) = spared_run.pfc_watchdog
    assert found.port == "p0l1:4"
    assert (found.storms_detected, found.storms_restored, found.is_stormed) == (1, 1, False)
    assert found.tx_dropped_packets == spared_run.drops["queue storm"] > 0
    assert found.rx_dropped_packets == 0  # its own flow had ended
    assert [each.event for each in spared_run.pfc_storms] == ["detected", "restored"]
    detected, restored = (each.time_ps for each in spared_run.pfc_storms)
    assert 170e6 <= detected < 300e6
    assert restored >= 1600e6
    assert spared_run.retransmissions > 0


def test_an_endless_storm_is_reported_as_a_standstill() -> None:
    with pytest.raises(DeadlockError, match=r"the NIC of h7 pauses p0l1:4 \(class 3\) without end"):
        run(STORM)


@pytest.mark.slow
def test_with_a_watchdog_only_flows_of_the_broken_host_fail() -> None:
    with pytest.raises(CheckFailedError, match="h0: failed after 1 of 2 steps: node 0: retry_exceeded") as caught:
        run(STORM, watchdog=WATCHDOG, transport=TREE["transport"] | {"retransmission_timeout": "60us"})
    # All others have ended, the victims with them.
    assert {f"h{n}" for n in range(8) if f"h{n}: " in str(caught.value)} == {"h0", "h7"}


@pytest.mark.parametrize(("action", "drops"), [("forward", {}), ("alert", {})])
def test_the_other_actions_lose_nothing(action: str, drops: dict[str, int]) -> None:
    result = run(ENDING, watchdog=WATCHDOG | {"action": action})
    assert result.drops == drops
    # With alert, ports of other switches find a storm, too: the pauses spread to them.
    assert "p0l1:4" in {each.port for each in result.pfc_watchdog}
    assert (len(result.pfc_watchdog) > 1) == (action == "alert")
    assert not any(each.tx_dropped_packets or each.rx_dropped_packets for each in result.pfc_watchdog)
    stopped, _ = completions_us(result)
    assert (max(stopped) > 1500) == (action == "alert")


def test_a_run_with_a_storm_never_looks_clean(tmp_path: Path) -> None:
    result = run(ENDING, watchdog=WATCHDOG)
    assert result.warnings == [
        "the NIC of h7 asked for pauses of class 3 from 20 µs on, until 1.5 ms",
        f"the PFC watchdog found 1 storm, at p0l1:4 in class 3, and dropped {result.drops['queue storm']} packets",
    ]
    result.save(tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["nic_storms"][0]["host"] == "h7"
    read = read_results(tmp_path / "results.json")
    assert read.nic_storms == result.nic_storms
    assert read.pfc_watchdog == result.pfc_watchdog
    assert read.pfc_storms == result.pfc_storms


def test_why_names_the_broken_nic() -> None:
    result = run(ENDING)
    fabric = run_spec(parse_scenario(TREE)).fabric
    first = limits_of(Evidence(result, fabric, result.observations.tables))[0]
    assert (first.kind, first.place) == ("nic_storms", "h7")
    assert "the NIC of h7, which asked for pauses of class 3 without end from 20 µs on" in first.sentence


def test_a_healthy_run_finds_nothing_and_is_as_without_a_watchdog() -> None:
    without, with_it = run(), run(watchdog=WATCHDOG)
    assert with_it.pfc_watchdog == with_it.pfc_storms == with_it.warnings == []
    assert completions_us(without) == completions_us(with_it)
    assert "pfc_watchdog" not in with_it.as_dict()


def test_runs_repeat() -> None:
    assert run(ENDING, watchdog=WATCHDOG).as_dict() == run(ENDING, watchdog=WATCHDOG).as_dict()


def test_a_storm_that_comes_too_late_is_named() -> None:
    result = run(STORM | {"at": "1s"})
    (event,) = result.unfinished_events
    assert (event.event, event.state) == ("h7 storming", "not begun")


@pytest.mark.parametrize(
    ("events", "place", "problem"),
    [
        ([STORM | {"host": "h9"}], "events[0].host", "no host 'h9'"),
        ([STORM | {"classes": [4]}], "events[0].classes", "[4] are not in pfc.classes"),
        ([STORM, STORM | {"at": "30us"}], "events[1].at", "h7 is storming already"),
        ([ENDING, STORM | {"at": "1500us"}], "events[1].at", "h7 is storming already"),
        ([STORM | {"until": "10us"}], "events[0]", "is not after at"),
        ([{"host": "h7", "state": "down", "at": "1us", "until": "2us"}], "events[0]", "until is for state: storming"),
        ([{"link": "h7<->p0l1", "state": "storming"}], "events[0]", "a link cannot be 'storming'"),
        ([{"switch": "p0s1", "state": "storming"}], "events[0]", "a switch cannot be 'storming'"),
    ],
)  # fmt: skip
def test_a_storm_that_cannot_be_is_refused(events: list[dict[str, Any]], place: str, problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        run(*events)
    assert problem in str(caught.value)
    assert place in str(caught.value)


def test_pfc_is_needed() -> None:
    with refused(
        BadInputError, place="scenario: events[0].state", problem="links have no PFC", valid="pfc.classes: [3]"
    ):
        parse_scenario(TREE | {"events": [STORM]})
    with refused(BadInputError, place="scenario: pfc", problem="which classes are not to lose packets"):
        parse_scenario(TREE | {"pfc": {"watchdog": {}}})


def test_the_real_clock_refuses_a_storm() -> None:
    fabric = topologies.leaf_spine()
    options = FabricOptions.model_validate(
        {"clock": "real", "pfc": {"classes": [3]}, "events": [STORM | {"host": "h1"}]}
    )
    with refused(EnvironmentLacksError, place="events[0].state", problem="takes no command to break its NIC"):
        check_events(fabric, options)
