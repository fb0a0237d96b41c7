"""Every kind of topology in Mininet under its own routing, and every general kind of routing: verified all-reduces."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_fabrics import EXAMPLES, example, routings_of, scenario_of

from weft.controller.features.kind import DEFAULT_ROUTING
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.scenario.parsing import read_mapping

pytestmark = [pytest.mark.mininet, pytest.mark.slow]
RAILS = example("rail_only")
SCALE_UP = example("scale_up")
THREE_TIERS = example("three_tiers")
FEWEST_HOSTS = {"pods": 2, "leaves": 1, "spines": 1, "hosts_per_leaf": 2}
"""Of three tiers with a leaf that two hosts share: k-ary fat trees, of the same kind, run as the example has them."""
GENERAL = example("file")
"""A graph without structure: kinds of routing that can do with it are for any fabric, so they run on this one."""


OTHERS = [
    (example("torus"), DEFAULT_ROUTING),
    (example("dragonfly"), DEFAULT_ROUTING),
    (example("dragonfly"), "dragonfly_ugal"),
]
"""Real time is long: what is left out here runs in tests/topologies/test_examples.py."""


def _cases() -> list[tuple[Path, str]]:
    own = [(path, load_scenario(path).routing.kind) for path in EXAMPLES]
    chosen = [case for case in own if case[0] != GENERAL]
    return [*chosen, *OTHERS, *((GENERAL, each) for each in routings_of(GENERAL))]


@pytest.mark.parametrize(
    ("path", "routing"), [pytest.param(*case, id=f"{case[0].stem}-{case[1]}") for case in _cases()]
)
def test_all_reduces_are_right(path: Path, routing: str) -> None:
    sections = {}
    if path == THREE_TIERS:
        sections["fabric"] = read_mapping(path, "scenario")["fabric"] | FEWEST_HOSTS
    result = run_scenario(scenario_of(path, "real", routing, **sections))
    assert result.ok
    assert all(each.wrong == 0 and each.identical for each in result.collectives)
    # Rails meet inside hosts alone, over links between processes.
    by_switches = "nvls" if path == SCALE_UP else "in-network"
    algorithms = {"hierarchical"} if path == RAILS else {"ring", by_switches}
    assert {each.algorithm for each in result.collectives} >= algorithms
