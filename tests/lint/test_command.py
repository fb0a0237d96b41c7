"""`weft lint`: places, exit codes, forms of output; and `weft run`, which says the same before it begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from weft.commands.lint import lint
from weft.run.lint import page
from weft.run.runner import run_scenario
from weft.scenario import load_scenario

WRONG = """\
clock: virtual
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 2, host_rate: 100Gb/s, delay: 1us}
pfc:
  classes: [3]
  headroom: 8KiB
traffic:
  - {permutation: 4KiB}
"""
CLEAN = WRONG.replace("  headroom: 8KiB\n", "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wrong.yaml").write_text(WRONG)
    (tmp_path / "clean.yaml").write_text(CLEAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def linted(*arguments: str) -> tuple[int, Result]:
    result = CliRunner().invoke(lint, list(arguments), standalone_mode=False)
    assert result.exception is None
    return result.return_value, result


@pytest.mark.usefixtures("folder")
def test_a_finding_has_its_file_line_and_rule_and_the_exit_status_says_so() -> None:
    code, result = linted("wrong.yaml", "clean.yaml")
    line, total = result.stdout.splitlines()
    assert code == 1
    assert line.startswith("wrong.yaml:5: pfc.headroom: 8192 B are less than the ")
    assert line.endswith(" [pfc-headroom]")
    assert total == "1 finding in 2 scenarios"


@pytest.mark.usefixtures("folder")
def test_without_a_finding_nothing_is_printed_but_the_number() -> None:
    code, result = linted("clean.yaml")
    assert (code, result.stdout, result.stderr) == (0, "no finding in 1 scenario\n", "")


@pytest.mark.usefixtures("folder")
def test_an_option_is_the_place_of_what_it_sets_and_the_values_named_mend_it() -> None:
    code, result = linted("clean.yaml", "--set", "pfc.headroom=1KiB")
    assert code == 1
    assert result.stdout.startswith("--set pfc.headroom: 1024 B are less")
    code, result = linted("wrong.yaml", "--format", "json")
    found = json.loads(result.stdout)
    ((finding,),) = [each["findings"] for each in found["scenarios"]]
    assert (code, found["findings"], finding["rule"]) == (1, 1, "pfc-headroom")
    assert finding["place"] == "wrong.yaml:5"
    settings = [word for key, value in finding["settings"].items() for word in ("--set", f"{key}={value}")]
    assert linted("wrong.yaml", *settings)[0] == 0


def test_a_refusal_is_a_finding_without_a_traceback(folder: Path) -> None:
    (folder / "refused.yaml").write_text(CLEAN + "int: false\ntransport: {congestion_control: hpcc}\n")
    (folder / "no.yaml").write_text("fabric: [\n")
    (folder / "unknown.yaml").write_text('no-such-key: "\\e[31m"\n')
    code, result = linted("refused.yaml", "no.yaml", "unknown.yaml")
    lines = [line for line in result.stdout.splitlines() if line.endswith("[refused]")]
    assert (code, len(lines)) == (1, 3)
    assert lines[0].startswith("refused.yaml:8: ")
    assert "needs int: true" in lines[0]
    assert "\x1b" not in result.stdout


def test_all_points_of_a_sweep_are_looked_at(folder: Path) -> None:
    (folder / "sweep.yaml").write_text("scenario: clean.yaml\ngrid: {pfc.headroom: [64KiB, 8KiB, 4KiB]}\n")
    code, result = linted("sweep.yaml")
    assert code == 1
    assert ["8192 B" in result.stdout, "4096 B" in result.stdout, "65536 B" in result.stdout] == [True, True, False]


@pytest.mark.usefixtures("folder")
def test_a_scenario_of_the_real_clock_needs_no_root() -> None:
    assert linted("clean.yaml", "--set", "clock=real")[0] == 0


@pytest.mark.usefixtures("folder")
def test_a_run_says_the_same_before_it_begins_and_in_its_results() -> None:
    said: list[str] = []
    result = run_scenario(load_scenario(Path("wrong.yaml")), said.append)
    line = linted("wrong.yaml")[1].stdout.splitlines()[0].removesuffix(" [pfc-headroom]")
    began = next(index for index, each in enumerate(said) if "compiling" in each)
    assert said.index(f"warning: {line}") < began
    assert [f"wrong.yaml:5: {each}" for each in result.warnings] == [line]


def test_the_page_has_a_row_for_each_rule() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_table(text) == text, "a rule has changed: run python -m weft.run.lint.page"
    assert page.with_table(text.replace("| rule |", "")) == text
