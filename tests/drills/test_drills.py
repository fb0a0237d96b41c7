"""Drills: what is drawn, what is judged, and that the smallest scenario breaks the objective by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from weft.cli import weft
from weft.drills.faults import FAULT_KINDS, Stage, draw_faults, kinds_for
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.scenario import load_scenario, read_mapping
from weft.scenario.drill import DrillSection
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.kinds.rail_only import rail_only

SCENARIO = """
name: small
seed: 3
fabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 2, host_rate: 100Gb/s}
int: false
transport: {congestion_control: dcqcn}
pfc: {classes: [3]}
control: {latency: 2us, detection: 10us}
traffic:
  - {collective: allreduce, algorithms: [ring], sizes: [1MiB]}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def drill(*arguments: object) -> Result:
    return CliRunner().invoke(weft, ["drill", *map(str, arguments)], standalone_mode=False, catch_exceptions=False)


def drawn(out: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads((out / "drills.json").read_text(encoding="utf-8"))["drills"]
    return found


FABRICS = {
    "leaf and spine": leaf_spine(planes=1, leaves=3, spines=2, hosts_per_leaf=2),
    "planes": leaf_spine(planes=3, leaves=2, spines=2, hosts_per_leaf=2),
    "rails": rail_only(planes=1, rails=2, blocks=1, hosts_per_leaf=4),
}


@given(st.sampled_from(["leaf and spine", "planes"]), st.integers(0, 10_000), st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_faults_never_part_hosts(name: str, seed: int, most: int) -> None:
    fabric = FABRICS[name]
    stage = Stage(fabric, 1_000_000, 500_000_000, pauses=True)
    faults = draw_faults(Random(seed), stage, kinds_for(stage, None), most)
    assert 1 <= len(faults) <= most
    places = [place for fault in faults for place in fault.places]
    assert len(places) == len(set(places))
    lost = {link for fault in faults for link in fault.lost}
    assert any(connected(fabric, plane, lost) for plane in range(fabric.planes))
    for fault in faults:
        for event in fault.events:
            assert 0 <= int(str(event["at"]).removesuffix("ps")) < 1_000_000_000


def connected(fabric: FabricSpec, plane: int, lost: Container[object]) -> bool:
    """Whether all hosts of a plane are joined, by a search from the first."""
    left: dict[str, list[str]] = {}
    switches = {switch.name for switch in fabric.switches if switch.plane == plane}
    for link in fabric.links:
        if link not in lost and (link.a.node in switches or link.b.node in switches):
            left.setdefault(link.a.node, []).append(link.b.node)
            left.setdefault(link.b.node, []).append(link.a.node)
    seen, waiting = {fabric.hosts[0].name}, [fabric.hosts[0].name]
    while waiting:
        for node in left.get(waiting.pop(), []):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return {host.name for host in fabric.hosts} <= seen


def test_a_seed_draws_the_same_faults_and_every_kind_is_drawn() -> None:
    stage = Stage(FABRICS["planes"], 0, 10**9, pauses=True)
    kinds = kinds_for(stage, None)
    assert kinds == list(FAULT_KINDS)
    first, again = ([draw_faults(Random(number), stage, kinds, 3) for number in range(40)] for _ in range(2))
    assert first == again
    assert {fault.kind for faults in first for fault in faults} == set(kinds)


def test_scenarios_and_the_page_name_the_kinds_that_are_drawn() -> None:
    assert DrillSection.model_validate({"kinds": list(FAULT_KINDS)}).kinds == list(FAULT_KINDS)
    with pytest.raises(ValidationError, match="no kind of fault 'link-dwn'; did you mean 'link-down'"):
        DrillSection.model_validate({"kinds": ["link-dwn"]})
    page = (ROOT / "docs/drills.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(FAULT_KINDS)


def test_kinds_that_a_fabric_cannot_have_are_left_out_or_refused() -> None:
    stage = Stage(FABRICS["leaf and spine"], 0, 10**9, pauses=False)
    assert kinds_for(stage, None) == ["link-down", "link-flap", "link-slow", "lossy-link", "switch-down"]
    with pytest.raises(BadInputError, match="plane-down cannot happen: the fabric has one plane"):
        kinds_for(stage, ["plane-down"])
    with pytest.raises(BadInputError, match="no fault can be drawn"):
        kinds_for(Stage(FABRICS["rails"], 0, 10**9, pauses=False), None)


def test_an_objective_that_holds_ends_with_0(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = drill(
        scenario, "--count", 4, "--workers", 2, "--out", out, "--set", "drill.objective.slowdown=1000",
        "--set", "drill.objective.recovery=1s",
    )  # fmt: skip
    assert done.return_value == 0
    assert "held in all of 4 drills" in done.stdout
    found = drawn(out)
    assert [each["number"] for each in found] == [1, 2, 3, 4]
    assert all(each["faults"] and each["slowdown"] for each in found)
    assert not list(out.glob("broken-*"))


@pytest.mark.slow
def test_the_smallest_scenario_breaks_the_objective_by_itself(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    strict = ("--set", "drill.objective.slowdown=1.05", "--set", "drill.kinds=[link-slow, lossy-link]")
    done = drill(scenario, "--count", 5, "--workers", 2, "--out", out, *strict, "--set", "drill.faults=3")
    assert done.return_value == 1
    broken = [each for each in drawn(out) if each["broken"]]
    assert broken
    for each in broken:
        smallest = each["smallest"]
        assert isinstance(smallest, list)
        assert set(smallest) <= set(each["faults"])  # type: ignore[call-overload]
        path = out / f"broken-{each['number']}.yaml"
        assert load_scenario(path).traffic
        tree = read_mapping(path, "a scenario")
        assert len(tree.get("events", [])) + len(tree.get("faults", {}).get("links", [])) == len(smallest)
    # By itself, without a drawn fault, it breaks as a drill does.
    times = {}
    for name, path in (("steady", scenario), ("broken", out / f"broken-{broken[0]['number']}.yaml")):
        run = tmp_path / name
        CliRunner().invoke(weft, ["run", str(path), "--set", "clock=virtual", "--out", str(run)], standalone_mode=False)
        results = json.loads((run / "results.json").read_text(encoding="utf-8"))
        times[name] = results["collectives"][0]["time_ps"]
    assert times["broken"] > 1.05 * times["steady"]


@pytest.mark.slow
def test_drills_go_on_where_they_were(scenario: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    drill(scenario, "--count", 2, "--out", out)
    first = drawn(out)
    points = set((out / "points").iterdir())
    drill(scenario, "--count", 3, "--out", out)
    assert drawn(out)[:2] == first
    assert points < set((out / "points").iterdir())


def test_a_scenario_without_traffic_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text("fabric: {planes: 1, leaves: 2, spines: 2, hosts_per_leaf: 2}\n", encoding="utf-8")
    with pytest.raises(BadInputError, match="no traffic"):
        drill(path, "--out", tmp_path / "out")
