"""One description of a run, made once whatever the entry point."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Self
from unittest.mock import Mock

import pytest

import weft.sweeps.point
from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.cli import weft as weft_command
from weft.run.runner import run_scenario
from weft.run.spec import RunSpec, fabric_run_spec, run_spec
from weft.scenario import FabricOptions, Scenario, parse_scenario
from weft.scenario.values import Section
from weft.topologies import FabricSpec

SMALL = "{planes: 1, leaves: 1, spines: 0, hosts_per_leaf: 2}"
SCENARIO = f"fabric: {SMALL}\nclock: virtual\ntraffic:\n- {{permutation: 4KiB}}\n"


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often whole scenarios, and the options of a fabric, are checked."""
    counts: Counter[str] = Counter()
    original = Section.model_validate.__func__

    def counted(cls: type[Section], *arguments: Any, **options: Any) -> Section:
        if cls in (Scenario, FabricOptions):
            counts[cls.__name__] += 1
        checked: Section = original(cls, *arguments, **options)
        return checked

    monkeypatch.setattr(Section, "model_validate", classmethod(counted))
    initialised = FabricOptions.__init__

    def constructed(self: FabricOptions, **values: Any) -> None:
        counts["constructed"] += 1
        initialised(self, **values)

    monkeypatch.setattr(FabricOptions, "__init__", constructed)
    return counts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def invoke(*arguments: object) -> None:
    assert weft_command.main([str(each) for each in arguments], standalone_mode=False) in (0, None)


def test_weft_run_checks_its_scenario_once(file: Path, validated: Counter[str], tmp_path: Path) -> None:
    invoke("run", file, "--seed", 3, "--set", "mtu=512", "--out", tmp_path / "out")
    assert validated == {"Scenario": 1}


@pytest.fixture
def labs_built(monkeypatch: pytest.MonkeyPatch) -> list[RunSpec]:
    """What `weft lab` would have built and left up, had it the machine for it."""
    mininet = pytest.importorskip("mininet.cli")
    built: list[RunSpec] = []

    class Lab:
        def __init__(self, fabric: FabricSpec, options: FabricOptions, progress: object) -> None:
            built.append(RunSpec(None, fabric, options))
            self.link_events = self.network = Mock()
            self.fabric, self.verbs = fabric, Mock(sockets={})

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr("weft.clocks.real.lab.MininetLab", Lab)
    monkeypatch.setattr("weft.clocks.environment.require_mininet", lambda: None)
    monkeypatch.setattr(mininet, "CLI", lambda net: None)
    return built


def test_weft_lab_checks_its_scenario_once(tmp_path: Path, validated: Counter[str], labs_built: list[RunSpec]) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(f"fabric: {SMALL}\n", encoding="utf-8")
    invoke("lab", path)
    assert [spec.options.clock for spec in labs_built] == ["real"]
    assert validated == {"Scenario": 1}


def test_weft_lab_warns_of_what_only_runs_record_and_goes_on(
    tmp_path: Path, labs_built: list[RunSpec], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lab.yaml"
    observe = 'observe: {queues: all, int: all, state_at: [1us], captures: ["p0l0:1"]}'
    path.write_text(f"fabric: {SMALL}\n{observe}\n", encoding="utf-8")
    invoke("lab", path)
    (spec,) = labs_built
    assert not spec.options.observe.any
    assert "warning: observe (queues, int, state_at, captures)" in capsys.readouterr().err
    path.write_text(f"fabric: {SMALL}\n", encoding="utf-8")
    invoke("lab", path)
    assert "warning" not in capsys.readouterr().err


def test_weft_collective_checks_its_options_once(validated: Counter[str]) -> None:
    invoke(
        "collective", "allreduce", "--algorithm", "ring", "--sizes", "4K", "--planes", 1, "--leaves", 1,
        "--spines", 0, "--clock", "virtual",
    )  # fmt: skip
    assert validated == {"Scenario": 1}


def test_a_point_of_a_sweep_checks_its_scenario_once(
    file: Path, validated: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["weft.sweeps.point", str(file.parent)])
    monkeypatch.setattr(weft.sweeps.point, "die_with_parent", lambda: None)
    with pytest.raises(SystemExit) as left:
        weft.sweeps.point.run_here()
    assert left.value.code == 0
    assert validated == {"Scenario": 1}


def test_a_fabric_from_python_checks_its_options_once(validated: Counter[str]) -> None:
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual", mtu_bytes=512) as fabric:
        fabric.permutation(4096)
        fabric.summary()
    assert validated == {"FabricOptions": 1}


@pytest.mark.fabric(clock="virtual", planes=1, leaves=1, spines=0, hosts_per_leaf=2)
def test_the_fixture_checks_its_options_once(request: pytest.FixtureRequest, validated: Counter[str]) -> None:
    fabric: Fabric = request.getfixturevalue("fabric")
    fabric.permutation(4096)
    assert validated == {"FabricOptions": 1}


def test_every_entrance_gives_the_same_description(file: Path) -> None:
    from weft.scenario import load_scenario

    of_file = run_spec(load_scenario(file))
    of_tree = run_spec(
        parse_scenario(
            {
                "fabric": {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
                "clock": "virtual",
                "traffic": [{"permutation": 4096}],
            }
        )
    )
    assert of_file == of_tree
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    of_python = fabric_run_spec(topology, clock="virtual")
    assert of_python == RunSpec(None, of_file.fabric, of_file.options)


def test_a_description_cannot_be_changed(file: Path) -> None:
    spec = run_spec(parse_scenario({}))
    with pytest.raises(AttributeError):
        spec.name = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="frozen"):
        spec.options.seed = 2


def test_a_running_scenario_takes_its_description(file: Path) -> None:
    scenario = parse_scenario({"clock": "virtual", "fabric": {"leaves": 1, "spines": 0, "planes": 1}})
    assert run_scenario(run_spec(scenario)).as_dict() == run_scenario(scenario).as_dict()


def test_a_description_has_its_options_already() -> None:
    spec = run_spec(parse_scenario({"clock": "virtual"}))
    with pytest.raises(BadInputError, match="seed"):
        Fabric(spec, seed=2)


def test_keys_have_one_spelling_in_files() -> None:
    with refused(BadInputError, place="scenario", problem="unknown key"):
        parse_scenario({"mtu_bytes": 512})
    with refused(BadInputError, place="scenario", problem="int_telemetry"):
        parse_scenario({"int_telemetry": False})
