"""Events that are scheduled for after the end of the traffic: results and the terminal say that they did not happen."""

from __future__ import annotations

from typing import Any

import pytest

from weft import Fabric, topologies
from weft.report.page import report_page
from weft.report.run_directory import RunDirectory
from weft.results.printing import print_run
from weft.results.results_file import read_results
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import ControlSection, parse_scenario
from weft.system.consoles import make_console

US = 10**6
LEAF_SPINE = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "host_rate": "100Gbps"}
CORE = {
    "kind": "optical_core",
    "leaves": 4,
    "matchings": {"a": [0, 1], "b": [0, 2]},
    "planes": 1,
    "hosts_per_leaf": 1,
}
LINK = "p0l0<->p0s1"


def run(**keys: Any) -> RunResult:
    scenario = {"clock": "virtual", "fabric": LEAF_SPINE, "traffic": [{"permutation": "64KiB"}]}
    return run_scenario(parse_scenario(scenario | keys))


def found(result: RunResult) -> list[tuple[str, int, str, int]]:
    return [(each.event, each.at_ps, each.state, each.count) for each in result.unfinished_events]


def test_events_after_the_end_are_in_the_results_and_on_the_terminal(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(
        events=[
            {"link": LINK, "state": "slow", "rate": "90Gb/s", "at": "5us"},
            {"link": LINK, "state": "flapping", "at": "500ms", "count": 3, "period": "20us"},
            {"link": LINK, "state": "slow", "rate": "1Gb/s", "at": "600ms"},
            {"switch": "p0s1", "state": "drained", "at": "700ms"},
        ]
    )
    ms = 10**9
    assert found(result) == [
        (f"{LINK} down", 500 * ms, "not begun", 3),
        (f"{LINK} up", 500 * ms + 10 * US, "not begun", 3),
        (f"{LINK} slow", 600 * ms, "not begun", 1),
        ("p0s1 drained", 700 * ms, "not begun", 1),
    ]
    (warning,) = result.all_warnings
    assert warning.startswith("the traffic ended before scheduled events, which did not happen: ")
    assert f"{LINK} down at 500 ms and 2 more times" in warning
    assert result.ok
    again = read_results(result.save(tmp_path))
    assert again.all_warnings == [warning]
    print_run(make_console(), again)
    assert "warning: the traffic ended before" in capsys.readouterr().out
    assert "did not happen" in report_page(RunDirectory.read(tmp_path))


def test_changes_of_circuits_that_never_began_and_that_never_ended() -> None:
    schedule = [{"at": "10us", "configuration": "b"}, {"at": "900ms", "configuration": "a"}]
    waiting = {"interval": "300ms", "drain_timeout": "600ms"}
    result = run(fabric=CORE, circuits={"schedule": schedule}, controller=waiting)
    assert found(result) == [
        ("circuits b", 10 * US, "not ended", 1),
        ("circuits a", 900_000 * US, "not begun", 1),
    ]
    assert len(result.all_warnings) == 2


def test_a_run_whose_events_have_all_happened_warns_of_nothing() -> None:
    result = run(events=[{"link": LINK, "state": "down", "at": "5us"}, {"switch": "p0s1", "state": "cordoned"}])
    assert result.unfinished_events == result.all_warnings == []
    assert "unfinished_events" not in result.as_dict()


def test_times_of_the_controller_count_from_when_the_fabric_was_up() -> None:
    control = {"latency": "50us", "detection": "20us"}
    cordoned = {"switch": "p0s0", "state": "cordoned"}
    down = {"link": "h0<->p0l0", "state": "down", "at": "30us"}
    up = {"link": "h0<->p0l0", "state": "up", "at": "90us"}
    result = run(control=control, events=[cordoned, down, up], traffic=[{"permutation": "1MiB"}])
    times = {event.kind: event.time_ps for event in result.controller_events}
    assert times["cordoned"] == 0
    # Half a latency for the switch's message.
    assert times["link down"] == (30 + 20 + 25) * US
    assert times["link up"] == (90 + 20 + 25) * US
    first, second = result.link_events
    assert first.happened_ps is not None
    assert second.happened_ps == first.happened_ps + 60 * US


def test_recoveries_are_known_when_the_run_has_ended() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2, host_rate_bps=100e9)
    control = ControlSection(detection=5 * US)
    with Fabric(fabric, clock="virtual", seed=3, control=control) as running:
        down = running.schedule_link("p0l0", "p0s1", "down", 10 * US)
        running.permutation(200_000)
        recovery_ps = down.last_recovery_ps
        assert recovery_ps is not None
        running.summary()
        assert down.last_recovery_ps == recovery_ps
