"""docs/debugging.md: every command on the page prints what the page says, "…" standing for lines left out."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from weft.cli import run_guarded, weft

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
COMMANDS = [
    command.partition("\n")[::2]
    for block in re.findall(r"^```\n(\$ weft .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for command in re.split(r"^\$ weft ", block, flags=re.MULTILINE)[1:]
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, in which commands may write."""
    path = tmp_path_factory.mktemp("debugging") / "debugging"
    shutil.copytree(ROOT / "examples" / "debugging", path)
    return path


def is_shown(page: list[str], output: list[str]) -> bool:
    """Say whether the page's lines are the output's, some left out at each "…"."""
    pattern = "\n".join("(?:.*\n)*?.*" if line.strip() == "…" else re.escape(line) for line in page)
    return re.fullmatch(pattern, "\n".join(output)) is not None


@pytest.mark.parametrize(("command", "said"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_the_page_shows_what_the_command_prints(
    command: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "110")
    run_guarded(lambda: weft.main(args=shlex.split(command), prog_name="weft", standalone_mode=False))
    captured = capsys.readouterr()
    lines = (captured.out + captured.err).splitlines()
    output = [line.rstrip() for line in lines if not line.startswith("· ")]  # without progress
    assert is_shown(said.splitlines(), output), "\n".join(output)


def test_the_page_has_examples() -> None:
    assert len(COMMANDS) >= 2
