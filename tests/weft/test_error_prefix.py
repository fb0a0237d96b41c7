"""Every command prints its errors with one prefix: usage, bad input, and what the machine lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import COMMANDS, SECTIONS, run_guarded, weft
from weft.command_errors import PREFIX
from weft.controller.cli import controller
from weft.paths import ROOT
from weft.switch.cli import switch

FAILING = {
    "Run": [
        ("run no-such.yaml", 2),
        ("run lab:no-such-lab", 2),
        ("run bad.yaml", 3),
        ("lint no-such.yaml", 2),
        ("sweep lab:01-allreduce --out sweep --grid no-such-key=1", 3),
        ("workbench no-such-folder --no-browser", 3),
        ("collective allreduce --sizes never", 2),
        ("lab lab:01-allreduce --clock virtual", 4),
        ("exec h0 true", 4),
        ("clean --force --cache", 2),
        ("paper", 2),
        ("paper no-such-paper --out papers", 3),
        ("bench training", 2),
        ("bench training bad.yaml", 3),
        ("drill", 2),
        ("drill bad.yaml", 3),
        ("doctor surplus", 2),
    ],
    "Look": [
        ("report bad.yaml", 2),
        ("why .", 3),
        ("compare . .", 3),
        ("trace bad.yaml --packet 00", 2),
        ("diff one two", 2),
        ("controller routes", 4),
        ("controller --device-id 1 routes", 2),
        ("shell p0l0", 4),
        ("switch-cli p0l0 table_dump x", 4),
    ],
    "Design": [
        ("topology show bad.yaml", 3),
        ("topology no-such-command", 2),
        ("job show lab:01-allreduce", 3),
        ("job-trace show no-such-trace", 3),
        ("calibrate", 2),
        ("calibrate bad.yaml --scenario bad.yaml", 3),
        ("cost", 2),
        ("cost lab:01-allreduce --assume no-such-key=1", 3),
        ("power", 2),
        ("power lab:01-allreduce --run . --accelerator H100", 3),
        ("goodput", 2),
        ("goodput lab:01-allreduce", 3),
        ("schedule", 2),
        ("schedule lab:01-allreduce", 3),
        ("switch-cost --memory 1MiB --jobs 1", 2),
    ],
    "Program": [
        ("new bad.yaml", 3),
        ("compile no-such.p4", 2),
        ("stf only-one.p4", 2),
        ("switch router.p4", 2),
        ("switch --no-p4 -i 1@a -i 1@b", 3),
        ("shims a:b", 3),
    ],
    "Learn": [
        ("labs copy no-such-lab", 3),
        ("labs copy 01 .", 3),
        ("check --solution", 2),
        ("check .", 3),
        ("init bad.yaml", 3),
        ("init new.yaml --preset no-such-preset", 3),
        ("presets no-such-preset", 3),
        ("schema --markdown --results", 2),
        ("completion tcsh", 2),
    ],
}


def said_by(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = run_guarded(lambda: weft.main(args=line.split(), prog_name="weft", standalone_mode=False))
    except SystemExit as leave:  # weft switch, as simple_switch_grpc
        code = int(str(leave.code))
    return code, capsys.readouterr().err


def require_prefix(said: str) -> None:
    lines = said.splitlines()
    assert [line for line in lines if line.startswith(PREFIX)], said
    assert "Error:" not in said
    assert "Traceback" not in said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bad.yaml").write_text("no-such-section: 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_STATE_FILE", str(tmp_path / "no-lab.json"))
    return tmp_path


def test_every_section_and_command_has_failing_lines() -> None:
    assert list(FAILING) == list(SECTIONS)
    for section, lines in FAILING.items():
        assert {line.split()[0] for line, _ in lines} == set(SECTIONS[section])


@pytest.mark.parametrize(("line", "code"), [each for lines in FAILING.values() for each in lines])
def test_errors_have_the_prefix(line: str, code: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, said = said_by(line, capsys)
    assert found == code, said
    require_prefix(said)


def test_an_unknown_command_and_option_have_the_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("no-such-command", "--no-such-option", "labs --no-such-option"):
        code, said = said_by(line, capsys)
        assert code == 2
        require_prefix(said)


def test_usage_comes_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = said_by("labs copy", capsys)
    assert said == (
        "Usage: weft labs copy [OPTIONS] NAME [FOLDER]\n"
        "Try 'weft labs copy --help' for help.\n\n"
        "weft: Missing argument 'NAME'.\n"
    )


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "exec"])
def test_help_is_no_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_guarded(lambda: weft.main(args=[name, "--help"], prog_name="weft", standalone_mode=False)) == 0
    assert PREFIX not in capsys.readouterr().err


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = said_by("topology", capsys)
    assert (code, said.startswith("Usage: "), PREFIX in said) == (2, True, False)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        (switch, ["--no-such-option"]),
        (switch, ["--no-p4", "--", "--no-such-option"]),
        (controller, ["no-such-command"]),
    ],
)
def test_programs_of_their_own_have_the_same_prefix(program: object, arguments: list[str]) -> None:
    result = CliRunner().invoke(program, arguments)  # type: ignore[arg-type]
    assert result.exit_code == 2
    require_prefix(result.stderr)


def test_a_process_ends_with_the_message_last(folder: Path) -> None:
    command = [sys.executable, "-m", "weft", "run", "bad.yaml"]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith(f"{PREFIX}bad.yaml:1: ")
