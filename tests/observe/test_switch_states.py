"""What switches hold at moments of a run (`observe.state_at`), and what changed between them (`weft diff`)."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.commands.diff import difference_text, read_state
from weft.errors import BadInputError
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario
from weft.switch.debug import states
from weft.switch.debug.states import Difference, FabricState, SwitchState, differences

INCAST = Path(__file__).resolve().parents[2] / "examples" / "debugging" / "incast.yaml"
MOMENTS = ["2us", "5us", "1s"]


def run(directory: Path, moments: list[str], **changes: object) -> list[str]:
    """Run the incast into a directory; return what was said of states."""
    directory.mkdir()
    said: list[str] = []
    given = [Change("observe.state_at", moments, "here")] if moments else []
    given += [Change(name, value, "here") for name, value in changes.items()]
    result = run_scenario(run_spec(load_scenario(INCAST, given)), said.append, directory=directory)
    result.save(directory)
    return [text for text in said if "state-" in text]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("states") / "run"
    (said,) = run(path, MOMENTS)
    assert said.startswith("no state-1s.json: the run was over at ")
    return path


def test_counters_are_those_of_the_moment(directory: Path) -> None:
    first, second = (read_state(directory / f"state-{moment}.json") for moment in MOMENTS[:2])
    assert (first.time_ps, second.time_ps) == (2 * 10**6, 5 * 10**6)
    assert list(first.switches) == ["p0l0", "p0l1", "p0s0", "p0s1"]
    assert first.left_out == 0
    leaf = first.switches["p0l0"]
    assert leaf.program == "fabric.p4"
    assert leaf.counters["FabricIngress.port_received"] == {"2": "11 packets, 12424 bytes"}
    assert leaf.entries["FabricIngress.classes.class_map"]["26"] == "FabricIngress.classes.set_class(class = 3)"
    assert list(leaf.groups.values()) == [{"1": "members 3, 4"}]
    changed = {(each.section, each.name) for each in differences(first, second)}
    assert ("counters", "FabricIngress.port_received") in changed
    assert ("registers", "FabricEgress.telemetry.port_tx_bytes") in changed
    assert not any(section in ("entries", "groups") for section, _ in changed)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_the_same_with_states(directory: Path, tmp_path: Path, workers: int) -> None:
    run(tmp_path / "plain", [], workers=workers)
    run(tmp_path / "observed", MOMENTS, workers=workers)
    found = []
    for name in ("plain", "observed"):
        results = json.loads((tmp_path / name / "results.json").read_text())
        del results["made_by"]  # which says what was observed
        found.append(results)
    assert found[0] == found[1]
    for moment in MOMENTS[:2]:
        name = f"state-{moment}.json"
        assert (tmp_path / "observed" / name).read_text() == (directory / name).read_text()


def weft_diff(*arguments: object) -> str:
    result = CliRunner().invoke(weft, ["diff", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_shows_what_changed(directory: Path) -> None:
    files = [directory / f"state-{moment}.json" for moment in MOMENTS[:2]]
    lines = weft_diff(*files, "--switch", "p0l0").splitlines()
    assert "~ p0l0 FabricEgress.telemetry.port_tx_bytes[1] 12424 → 49680" in lines
    assert "+ p0l0 FabricIngress.port_received[1] 2 packets, 216 bytes" in lines
    assert weft_diff(files[0], files[0]) == ""
    objects = [json.loads(line) for line in weft_diff(*files, "--json").splitlines()]
    assert len(objects) > len(lines)
    assert weft_diff(*files, "-n", 3).splitlines()[-1] == f"… and {len(objects) - 3} more (--lines)"


def test_what_is_there_no_longer_is_shown(tmp_path: Path) -> None:
    texts = ('{"time_ps": 1, "switches": {"s": {"program": "a.p4", "entries": {"t": {"1": "drop()"}}}}}',)
    before = FabricState.model_validate_json(texts[0])
    after = FabricState(time_ps=2, switches={"s": SwitchState(program="a.p4", groups={"g": {"1": "port 2"}})})
    for name, state in (("a", before), ("b", after)):
        (tmp_path / name).write_text(state.model_dump_json())
    assert weft_diff(tmp_path / "a", tmp_path / "b").splitlines() == ["- s t[1] drop()", "+ s g[1] port 2"]


@pytest.mark.parametrize("text", ["", "[]", '{"time_ps": -1, "switches": {}}', '{"switches": 3}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with refused(BadInputError, place="x.json", problem="this file is no state of"):
        weft_diff(path, path)


def test_a_file_cannot_steer_the_terminal() -> None:
    text = difference_text(Difference("s", "registers", "r\x1b[2J", "0\n", None, "\x07ü"))
    assert click.unstyle(text) == r"+ s r\x1b[2J[0\n] \x07ü"


def test_an_unknown_switch_is_refused(directory: Path) -> None:
    path = directory / "state-2us.json"
    with refused(BadInputError, place="--switch", valid="p0l0, p0l1, p0s0, p0s1"):
        weft_diff(path, path, "--switch", "p9")


def test_too_many_values_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MOST_VALUES", 10)
    run(tmp_path / "run", ["2us"])
    state = read_state(tmp_path / "run" / "state-2us.json")
    sections = [getattr(switch, section) for switch in state.switches.values() for section in states.SECTIONS]
    kept = [cells for section in sections for cells in section.values()]
    assert sum(map(len, kept)) == 10
    assert state.left_out > 50


def test_the_real_clock_keeps_none() -> None:
    changes = [Change("observe.state_at", ["2us"], "x"), Change("clock", "real", "x")]
    with refused(BadInputError, place="x", valid="with clock: virtual"):
        run_spec(load_scenario(INCAST, changes))
