"""The exercises of a local clone of p4lang/tutorials, which WEFT_TUTORIALS names: solutions, then starters."""

from __future__ import annotations

import json

import pytest
from tutorial_clone import EXERCISES, NEEDS_CLONE, scenario_of, topology

from weft.errors import BadInputError
from weft.run.fabric import Fabric
from weft.run.spec import run_spec

REFUSED_STARTERS = {
    "basic_tunnel": r"s1-runtime\.json: table_entries\[\d\]: unknown table 'MyIngress\.myTunnel_exact'",
    "flowcache": r"flowcache\.p4:\d+:\d+: .*has no field 'opcode'",
}
"""Starters whose entries or own code name what the student has yet to write, which their READMEs say."""
pytestmark = NEEDS_CLONE


def bring_up(exercise: str, solved: bool) -> None:
    """Build the exercise's network in virtual time, with its entries."""
    spec = run_spec(scenario_of(exercise, solved, []))
    with Fabric(spec) as fabric:
        asked = json.loads(topology(exercise).read_text(encoding="utf-8"))
        assert {host.name for host in fabric.topology.hosts} == set(asked["hosts"])
        assert {switch.name for switch in fabric.topology.switches} == set(asked["switches"])


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_solution_and_its_entries_go_together(exercise: str) -> None:
    bring_up(exercise, solved=True)


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_starter_comes_up_or_says_what_is_missing(exercise: str) -> None:
    if exercise not in REFUSED_STARTERS:
        bring_up(exercise, solved=False)
        return
    with pytest.raises(BadInputError, match=REFUSED_STARTERS[exercise]):
        bring_up(exercise, solved=False)
