"""examples/busy_uplinks: a controller that looks at counters at intervals, and moves traffic."""

from __future__ import annotations

import os
import shutil

import pytest

from weft.paths import ROOT
from weft.results.flows import FlowsResult
from weft.results.model import Results
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.scenario.parsing import Change

EXAMPLE = ROOT / "examples" / "busy_uplinks" / "busy_uplinks.yaml"


def run(clock: str, interval_us: int, *changes: tuple[str, object]) -> Results:
    given = [("clock", clock), ("controller.parameters.interval_us", interval_us), *changes]
    return run_scenario(load_scenario(EXAMPLE, [Change(key, value, "--set") for key, value in given]))


def flows_of(results: Results) -> FlowsResult:
    (found,) = results.traffic["flows"]
    assert isinstance(found, FlowsResult)
    return found


def test_timers_move_traffic_to_the_idle_uplink(capsys: pytest.CaptureFixture[str]) -> None:
    with_timers = run("virtual", 200)
    assert capsys.readouterr().out.splitlines() == [
        "50 us p0l0: 10.0.1.2 by port 4",
        "50 us p0l1: 10.0.0.1 by port 4",
    ]
    without = run("virtual", 0)
    assert capsys.readouterr().out == ""
    times_ms = [round(flows_of(each).time_ps / 10**9, 2) for each in (without, with_timers)]
    assert times_ms == [28.58, 14.34], "as examples/README.md says"
    assert (with_timers.drops, without.drops) == ({}, {})


@pytest.mark.mininet
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mnexec") is None, reason="needs root and Mininet")
def test_timers_move_traffic_in_mininet_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("real", 200, ("traffic", [{"permutation": "1MiB"}])).ok
    moves = [line.partition(" us ")[2] for line in capsys.readouterr().out.splitlines()]
    assert {move.partition(":")[0] for move in moves} == {"p0l0", "p0l1"}
    assert any(move.endswith("by port 4") for move in moves)
