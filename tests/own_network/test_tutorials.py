"""The exercises of a local clone of p4lang/tutorials, which WEFT_TUTORIALS names: solutions, then starters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.errors import BadInputError
from weft.results.plain_hosts import PINGS
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario.network_file import load_scenario_or_network
from weft.scenario.parsing import Change

CLONE = Path(os.environ.get("WEFT_TUTORIALS", "")) / "exercises"
VIRTUAL = Change("clock", "virtual", "--clock")
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
REFUSED_STARTERS = {
    "basic_tunnel": "unknown table 'MyIngress.myTunnel_exact'",
    "flowcache": "has no field 'opcode'",
}
"""Starters whose entries or own code name what the student has yet to write."""
pytestmark = pytest.mark.skipif(
    not os.environ.get("WEFT_TUTORIALS"), reason="WEFT_TUTORIALS names no clone of p4lang/tutorials"
)


def bring_up(exercise: str, p4: Path | None) -> None:
    """Build the exercise's network in virtual time, with its entries."""
    changes = [VIRTUAL] if p4 is None else [VIRTUAL, Change("p4", str(p4), "--p4")]
    scenario, network = load_scenario_or_network(CLONE / exercise / EXERCISES[exercise], changes)
    assert network is not None
    with Fabric(run_spec(scenario)) as fabric:
        assert {host.name for host in fabric.topology.hosts} == {host.name for host in network.hosts}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_solution_and_its_entries_go_together(exercise: str) -> None:
    solutions = sorted((CLONE / exercise / "solution").glob("*.p4"))
    bring_up(exercise, solutions[0] if solutions else None)


def answered(exercise: str, p4: Path | None) -> set[bool]:
    """Ping between all hosts; return whether pings are answered."""
    changes = [] if p4 is None else [Change("p4", str(p4), "--p4")]
    scenario, _ = load_scenario_or_network(CLONE / exercise / EXERCISES[exercise], changes, "virtual")
    return {each.sent == each.answered for each in run_scenario(scenario).of(PINGS)}


@pytest.mark.parametrize("exercise", ["basic", "basic_tunnel", "multicast", "qos"])
def test_hosts_reach_each_other_with_the_solution(exercise: str) -> None:
    assert answered(exercise, CLONE / exercise / "solution" / f"{exercise}.p4") == {True}


def test_no_host_is_reached_with_the_starter() -> None:
    assert answered("basic", None) == {False}


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_starter_comes_up_or_says_what_is_missing(exercise: str) -> None:
    if exercise not in REFUSED_STARTERS:
        bring_up(exercise, None)
        return
    with pytest.raises(BadInputError, match=REFUSED_STARTERS[exercise]):
        bring_up(exercise, None)
