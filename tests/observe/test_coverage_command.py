"""`--coverage DIR` of weft stf, weft run and pytest: what is written, that runs add up, and that they are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from browser import Elements, open_page
from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError, EnvironmentLacksError
from weft.report.coverage import read_coverage
from weft.run.coverage import RunCoverage
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import Change, load_scenario
from weft.switch.coverage.model import MOST_ENTRIES

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "debugging"
INCAST = EXAMPLES / "incast.yaml"
TEST = """
import numpy as np
import pytest
from weft import CollectiveRequest

@pytest.mark.fabric(clock="virtual", planes=1, leaves=1, spines=0, hosts_per_leaf=2)
@pytest.mark.parametrize("turn", [1, 2])
def test_it(fabric, turn):
    assert fabric.run(CollectiveRequest("allreduce", [np.ones(100, np.int32)] * 2)).result.ok
"""


def weft_stf(directory: Path, *options: str) -> str:
    arguments = ["stf", EXAMPLES / "router.p4", EXAMPLES / "router.stf", "--coverage", directory, *options]
    result = CliRunner().invoke(weft, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_scripts_add_up_in_a_directory(tmp_path: Path) -> None:
    output = weft_stf(tmp_path)
    assert "never: entry RouterIngress.routes: 10.0.9.0/24" in output
    (once,) = read_coverage(tmp_path)
    weft_stf(tmp_path)
    (twice,) = read_coverage(tmp_path)
    assert once.states["start"] == 3
    assert twice.states["start"] == 6
    assert twice.entries["RouterIngress.routes"] == {
        entry: 2 * hits for entry, hits in once.entries["RouterIngress.routes"].items()
    }
    tracefile = (tmp_path / "coverage.info").read_text()
    assert tracefile.count("SF:") == 1
    assert tracefile.endswith("end_of_record\n")


def test_the_page_shows_the_source(tmp_path: Path) -> None:
    weft_stf(tmp_path)
    opened = open_page(tmp_path / "index.html")
    assert opened.console == []
    elements = Elements(opened.dom)
    (coverage,) = read_coverage(tmp_path)
    (lines,) = coverage.lines.values()
    assert elements.classes["reached"] + elements.classes.get("partly", 0) == sum(map(bool, lines.values()))
    assert elements.classes["partly"] == 1
    assert "Content-Security-Policy" in opened.dom


def test_the_interpreter_counts_nothing(tmp_path: Path) -> None:
    with refused(EnvironmentLacksError, place="--coverage", valid="--switch native"):
        weft_stf(tmp_path, "--switch", "oracle")


@pytest.mark.parametrize("text", ["{}", '[{"name": 3}]', "[", "\0"])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "coverage.json").write_text(text)
    with refused(BadInputError, place="coverage.json", problem="this file holds no coverage of"):
        weft_stf(tmp_path)
    assert (tmp_path / "coverage.json").read_text() == text


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_is_the_same_with_coverage(tmp_path: Path, workers: int) -> None:
    spec = run_spec(load_scenario(INCAST, [Change("workers", workers, "workers")]))
    coverage = RunCoverage()
    covered = run_scenario(spec, attached=[coverage]).save(tmp_path / "covered")
    plain = run_scenario(spec).save(tmp_path / "plain")
    assert covered.read_text() == plain.read_text()
    (found,) = coverage.found
    assert found.name == "fabric.p4"
    assert found.states["start"] == 504, "the 216 packets, by the switches on their ways"
    assert sum(map(len, found.entries.values())) < MOST_ENTRIES


def test_a_run_s_command_writes_it_and_shows_it(tmp_path: Path) -> None:
    arguments = ["run", INCAST, "--out", tmp_path / "out", "--coverage", tmp_path / "coverage", "--json"]
    result = CliRunner().invoke(weft, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    json.loads(result.stdout)
    assert "coverage of fabric.p4" in result.stderr
    assert len(read_coverage(tmp_path / "coverage")) == 1


def test_runs_in_different_folders_add_up_with_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, name in (("a", "one.p4"), ("b", "two.p4")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes((EXAMPLES / "router.p4").read_bytes())
        monkeypatch.chdir(tmp_path / folder)
        arguments = ["stf", name, str(EXAMPLES / "router.stf"), "--coverage", "../coverage"]
        assert CliRunner().invoke(weft, arguments, catch_exceptions=False).exit_code == 0
    sources = [tmp_path / "a" / "one.p4", tmp_path / "b" / "two.p4"]
    assert [str(path) for each in read_coverage(tmp_path / "coverage") for path in each.lines] == list(
        map(str, sources)
    )
    page = (tmp_path / "coverage" / "index.html").read_text()
    assert page.count('<section class="source">') == 2


def test_what_cannot_be_added_to_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "coverage.json").write_text("{}")
    arguments = ["run", INCAST, "--out", tmp_path / "out", "--coverage", tmp_path]
    with refused(BadInputError, place="coverage.json", problem="holds no coverage of Weft's"):
        CliRunner().invoke(weft, list(map(str, arguments)), catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_the_real_clock_is_refused(tmp_path: Path) -> None:
    class Real:
        lab = object()

    with refused(EnvironmentLacksError, problem="--coverage is for runs of the"):
        RunCoverage().begin(Real())  # type: ignore[arg-type]
    with refused(EnvironmentLacksError, problem="--coverage is for runs of the"):
        CliRunner().invoke(
            weft, ["run", str(INCAST), "--clock", "real", "--coverage", str(tmp_path)], catch_exceptions=False
        )


def test_fabrics_of_tests_add_up(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(TEST, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "weft.pytest_plugin", "--rootdir", tmp_path, tmp_path]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    option = ["--weft-coverage", tmp_path / "coverage"]
    done = subprocess.run([*command, *option], capture_output=True, text=True, check=False, env=environment)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    (coverage,) = read_coverage(tmp_path / "coverage")
    assert coverage.states["start"] > 0
    assert coverage.states["start"] % 2 == 0, "both tests sent the same packets"
