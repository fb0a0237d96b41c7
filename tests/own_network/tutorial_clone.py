"""A local clone of p4lang/tutorials, which WEFT_TUTORIALS names: its exercises, run in virtual time."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weft.results.plain_hosts import SCRIPTS
from weft.results.run_result import RunResult
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Scenario
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change

CLONE = Path(os.environ.get("WEFT_TUTORIALS", "")) / "exercises"
EXERCISES = {
    "basic": "pod-topo/topology.json",
    "basic_tunnel": "topology.json",
    "calc": "topology.json",
    "ecn": "topology.json",
    "firewall": "pod-topo/topology.json",
    "flowcache": "topology.json",
    "link_monitor": "pod-topo/topology.json",
    "load_balance": "topology.json",
    "mri": "topology.json",
    "multicast": "sig-topo/topology.json",
    "p4runtime": "topology.json",
    "qos": "topology.json",
    "source_routing": "topology.json",
}
NEEDS_CLONE = pytest.mark.skipif(
    not os.environ.get("WEFT_TUTORIALS"), reason="WEFT_TUTORIALS names no clone of p4lang/tutorials"
)
CONTROLLERS = Path(__file__).parent / "tutorial_controllers.py"
STATION = f"{Path(__file__).parent / 'stations.py'}:Station"
MILLISECOND_PS = 10**9
SECOND_PS = 10**12


def topology(exercise: str) -> Path:
    """Return the network file of an exercise."""
    return CLONE / exercise / EXERCISES[exercise]


def solution(exercise: str) -> Path | None:
    """Return the program that solves an exercise; None where the student writes no P4."""
    found = CLONE / exercise / "solution" / f"{exercise}.p4"
    return found if found.is_file() else None


def program(exercise: str, solved: bool) -> Path | None:
    """Return the program to run in place of the starter's, if any."""
    return solution(exercise) if solved else None


def scenario_of(exercise: str, solved: bool, traffic: Sequence[Mapping[str, Any]], *changes: Change) -> Scenario:
    """Return traffic on an exercise's network, with the solution or the starter, in virtual time."""
    chosen = program(exercise, solved)
    own = [] if chosen is None else [Change("p4", str(chosen), "--p4")]
    every = [*own, Change("traffic", [dict(each) for each in traffic], "--set"), *changes]
    return load_scenario_or_network(topology(exercise), every, "virtual")[0]


def run(exercise: str, solved: bool, traffic: Sequence[Mapping[str, Any]], *changes: Change) -> RunResult:
    """Run it."""
    return run_scenario(scenario_of(exercise, solved, traffic, *changes))


@contextmanager
def after(exercise: str, solved: bool, traffic: Sequence[Mapping[str, Any]], *changes: Change) -> Iterator[Fabric]:
    """Yield the fabric once the traffic has run, for what its switches hold."""
    spec = run_spec(scenario_of(exercise, solved, traffic, *changes))
    with Fabric(spec) as fabric:
        for item in spec.traffic:
            item.run(fabric, lambda _: None)
        yield fabric


def stations(
    seen_by: Sequence[str], sent: Mapping[str, Sequence[tuple[float, bytes]]], duration: str
) -> dict[str, Any]:
    """Return traffic of scripts: hosts that send frames at times in seconds, and hosts that print what they see."""
    frames = {
        host: [[round(time_s * SECOND_PS), bytes(frame).hex()] for time_s, frame in of_host]
        for host, of_host in sent.items()
    }
    return {
        "script": dict.fromkeys([*sent, *(name for name in seen_by if name not in sent)], STATION),
        "parameters": {host: {"frames": of_host} for host, of_host in frames.items()},
        "duration": duration,
    }


def seen(result: RunResult, host: str) -> list[tuple[int, bytes]]:
    """Return the frames that a station has seen, with their times in picoseconds."""
    (found,) = (each for each in result.of(SCRIPTS) if each.host == host)
    return [(line.time_ps, bytes.fromhex(line.text)) for line in found.printed]


def their(exercise: str, name: str) -> ModuleType:
    """Return a Python module of the exercise, for the headers that it defines for Scapy."""
    path = CLONE / exercise / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"tutorials_{exercise}_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
