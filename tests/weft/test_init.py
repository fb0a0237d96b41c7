"""`weft init`: a scenario that runs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli import run_guarded, weft
from weft.scenario import load_scenario


def command(*arguments: object) -> int:
    return run_guarded(lambda: weft.main([*map(str, arguments)], standalone_mode=False))


def test_it_writes_a_scenario_that_runs_and_leaves_files_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    assert command("init", file) == 0
    assert f"wrote {file}" in capsys.readouterr().out
    assert f"weft run {file} --set" in file.read_text()
    assert command("run", file, "--out", tmp_path / "out") == 0
    file.write_text("seed: 7\n")
    assert command("init", file) == 3
    assert "is there already" in capsys.readouterr().err
    assert load_scenario(file).seed == 7


def test_what_stands_behind_comments_is_valid_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    command("init", file)
    head, rest = file.read_text().split("\n# observe:")
    file.write_text(head + "\nobserve:" + rest.replace("\n#   ", "\n  ").replace("\n# ", "\n"))
    scenario = load_scenario(file)
    assert scenario.observe.queues == "all"
    assert len(scenario.events) == 2
