"""`weft stf`: outcomes, exit codes, isolation."""

import json
import os
import signal
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.commands.stf import compile_case, exit_code, stf
from weft.errors import BadInputError
from weft.switch.stf import Case, Outcome, Verdict, find_cases, run_cases, runner
from weft.switch.stf.cases import architecture
from weft.switch.stf.errors import StfError
from weft.switch.stf.runner import Compile

CASES = Path(__file__).parent / "cases"
CASE = Case(CASES / "copies.p4", CASES / "copies.stf")


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and output; the group turns what a command returns into its exit code."""
    done = CliRunner().invoke(stf, list(arguments), standalone_mode=False)
    if isinstance(done.exception, click.ClickException):
        return done.exception.exit_code, done.exception.format_message()
    assert done.exception is None, done.exception
    return done.return_value, done.output


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def two_cases(tmp_path):
    for name in ("copies", "tables"):
        for suffix in (".p4", ".stf"):
            (tmp_path / name).with_suffix(suffix).write_bytes((CASES / name).with_suffix(suffix).read_bytes())
    return tmp_path


def test_a_directory_as_table(two_cases):
    code, output = run("--all", str(two_cases))
    assert code == 0
    assert "v1model: 2 of 2 pass, 0 fail, 0 refused" in output


def test_the_folders_below_are_searched(two_cases):
    below = two_cases / "below"
    below.mkdir()
    for path in two_cases.glob("copies.*"):
        path.rename(below / path.name)
    code, output = run("--all", str(two_cases), "--json")
    assert code == 0
    assert [case["name"] for case in json.loads(output)["cases"]] == ["below/copies", "tables"]


def test_one_case_reports_every_reason_in_full(tmp_path):
    assert run(str(CASE.program), str(CASE.script)) == (0, "copies: pass\n")
    script = write(tmp_path / "wrong.stf", "expect 1 00\nexpect 2 00\n")
    code, output = run(str(CASE.program), script)
    assert code == 1
    assert output.splitlines() == [
        "wrong: fail",
        f"  {script}:1: port 1: the expected packet did not come",
        f"  {script}:2: port 2: the expected packet did not come",
    ]


def test_a_directory_as_json(two_cases):
    code, output = run("--all", str(two_cases), "--json", "--switch", "oracle")
    report = json.loads(output)
    assert code == 0
    assert report["switch"] == "oracle"
    assert report["counts"] == {"v1model": {"pass": 2, "fail": 0, "refused": 0}}
    assert [case["name"] for case in report["cases"]] == ["copies", "tables"]


def test_a_failure_is_exit_code_1(tmp_path):
    code, output = run(str(CASE.program), write(tmp_path / "wrong.stf", "expect 1 00"), "--json")
    (case,) = json.loads(output)["cases"]
    assert code == 1
    assert case["verdict"] == "fail"
    assert case["reasons"] == [f"{tmp_path}/wrong.stf:1: port 1: the expected packet did not come"]


@pytest.mark.parametrize(
    ("program", "script", "reason"),
    [
        (None, "wait\npakket 1", "case.stf:2: unknown statement 'pakket'"),
        ("#include <core.p4>\n#include <v1model.p4>\nbit<8> x;\n", "wait", "case.p4:3:"),
        ("#include <core.p4>\n#include <psa.p4>\n", "wait", "psa.p4"),
    ],
)
def test_what_cannot_be_tried_is_refused_with_exit_code_3(tmp_path, program, script, reason):
    source = program if program is not None else CASE.program.read_text()
    paths = write(tmp_path / "case.p4", source), write(tmp_path / "case.stf", script)
    code, output = run(*paths, "--json")
    (case,) = json.loads(output)["cases"]
    assert (code, case["verdict"]) == (3, "refused")
    assert reason in case["reasons"][0]


@pytest.mark.parametrize("arguments", [(), (str(CASE.program),), (str(CASE.program), "--all", str(CASES))])
def test_usage(arguments):
    code, output = run(*arguments)
    assert code == 2
    assert "--all DIR" in output


def test_an_empty_directory_is_bad_input(tmp_path):
    write(tmp_path / "lonely.stf", "wait")
    with refused(StfError, place="test_an_empty_directory_is_bad0", problem="holds no NAME.stf"):
        find_cases(tmp_path)
    with refused(BadInputError, place="test_an_empty_directory_is_bad0", problem="holds no NAME.stf"):
        CliRunner().invoke(stf, ["--all", str(tmp_path)], standalone_mode=False, catch_exceptions=False)


def test_a_case_that_crashes_fails_alone(monkeypatch, two_cases):
    def crash_once(case: Case, switch: str, compile_program: Compile, *, covered: bool) -> Outcome:
        if case.name == "copies":
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(case, "v1model", Verdict.PASS)

    monkeypatch.setattr(runner, "run_case", crash_once)
    first, second = run_cases(find_cases(two_cases), "native", compile_case)
    assert (first.verdict, first.reasons) == (
        Verdict.FAIL,
        ("the process that ran it was ended by signal SIGKILL",),
    )
    assert second.verdict is Verdict.PASS


def test_a_case_that_hangs_is_ended(monkeypatch):
    monkeypatch.setattr(runner, "run_case", lambda *_, covered: threading.Event().wait())
    (outcome,) = run_cases([CASE], "native", compile_case, timeout_s=0.05)
    assert (outcome.verdict, outcome.reasons) == (Verdict.FAIL, ("no outcome within 0.05 s",))


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [("pass", 0), ("pass refused", 0), ("refused", 3), ("pass refused fail", 1), ("fail", 1)],
)
def test_exit_codes(verdicts, code):
    outcomes = [Outcome(CASE, "v1model", Verdict(verdict)) for verdict in verdicts.split()]
    assert exit_code(outcomes) == code


def test_the_architecture_is_found_through_files_that_include_each_other(tmp_path):
    write(tmp_path / "inner.p4", '#include "outer.p4"\n#include <v1model.p4>\n')
    outer = tmp_path / "outer.p4"
    write(outer, '#include <core.p4>\n # include "inner.p4"\n#include "missing.p4"\n')
    assert architecture(outer) == "v1model"
    assert architecture(tmp_path / "missing.p4") == "other"


def test_a_script_without_end_is_refused() -> None:
    status, output = run(str(CASE.program), "/dev/zero")
    assert status == 3
    assert "/dev/zero: this is a device, not a regular file" in output
