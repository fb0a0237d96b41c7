"""The scenarios of labs and examples have no finding, and rules understand every scenario that the schema allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.weft.scenario_mutations import all_keys, quantities_of, tree_with
from weft.commands.lint import findings_in_file
from weft.paths import EXAMPLES_DIRECTORY, LABS_DIRECTORY
from weft.quantities.yaml_files import read_mapping
from weft.run.lint.checked import findings_in
from weft.scenario import parse_scenario
from weft.scenario.schema import Key, SectionOfKeys, sections

NO_SCENARIOS = {"infragraph.infra.yaml", "kueue-topology.yaml", "nodes.yaml"}
# Lab 26 begins with pauses that come before marks; a slot that is too slow for its NIC is what the example is about.
FOUND_ON_PURPOSE = {
    "26-pauses/scenario.yaml": {"ecn-after-pause", "ecn-unreached"},
    "host/slot.yaml": {"host-slots"},
}
# They take long to build a fabric of, by their bounds.
LARGE = ("planes", "leaves", "spines", "pods", "cores_per_spine", "hosts_per_leaf", "ranks_per_host", ".block", "count",
         "shape", "switches", "slices", "width", "length")  # fmt: skip


def shipped() -> Iterator[Path]:
    yield from sorted(LABS_DIRECTORY.glob("*/*.yaml"))
    for path in sorted(EXAMPLES_DIRECTORY.rglob("*.yaml")):
        if path.name not in NO_SCENARIOS:
            yield path


@pytest.mark.parametrize("path", list(shipped()), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_shipped_scenarios_have_no_finding(path: Path) -> None:
    found = {finding.rule for finding in findings_in_file(path, [])}
    assert found == FOUND_ON_PURPOSE.get(f"{path.parent.name}/{path.name}", set())


def test_every_lab_is_looked_at() -> None:
    assert {path.parent.name for path in shipped()} >= {path.parent.name for path in LABS_DIRECTORY.glob("*/README.md")}
    assert read_mapping(LABS_DIRECTORY / "07-sweep" / "sweep.yaml", "a sweep")["scenario"]


@pytest.mark.parametrize("section", [each for each in sections() if each.keys], ids=lambda each: each.path or "top")
def test_no_value_at_its_bounds_makes_a_rule_fail(section: SectionOfKeys) -> None:
    for own, key in all_keys():
        if own.path == section.path:
            for value in _bounds(key):
                tree, _ = tree_with(section, key, value)
                for finding in findings_in(lambda tree=tree: parse_scenario(tree)):  # type: ignore[misc]
                    assert finding.consequence


def _bounds(key: Key) -> Iterator[int | float]:
    for quantity in quantities_of(key):
        yield quantity.lowest
        if not any(name in key.path for name in LARGE):
            yield quantity.highest
