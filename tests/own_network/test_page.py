"""docs/own-network.md shows the example as it is, and what its run prints."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from weft.cli import weft
from weft.controller.switch_cli import COMMANDS
from weft.paths import ROOT

PAGE = (ROOT / "docs" / "own-network.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_example_is_the_file() -> None:
    (shown,) = blocks("json")
    assert shown == (ROOT / "examples" / "own_network" / "topology.json").read_text(encoding="utf-8").rstrip()
    assert json.loads(shown)


@pytest.mark.parametrize("block", blocks("console"))
def test_the_output_is_that_of_the_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    command, *shown = block.splitlines()
    words, option, value = command.removeprefix("$ .venv/bin/weft ").partition(" --set ")
    arguments = [*shlex.split(words), *([option.strip(), value] if option else [])]
    result = CliRunner().invoke(weft, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.output.splitlines()]
    for line in shown:
        assert line == "…" or line in lines


def test_commands_that_are_named_are_there() -> None:
    table = PAGE.split("| commands | |")[1].split("\n\n")[0]
    named = re.findall(r"`(\w+)(…?)`", table)
    assert len(named) > 25
    for name, more in named:
        assert any(each.startswith(name) for each in COMMANDS) if more else name in COMMANDS
