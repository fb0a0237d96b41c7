"""The lab: its solution reaches all goals, what a student starts from says what is missing."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from weft.cli import weft
from weft.paths import ROOT

LAB = ROOT / "labs" / "21-rdma-programming"
KEPT_BUSY = """            while begun < count and SLOTS - len(self.free) < under_way:
"""
ONE_BUSY = """            if begun < count and len(self.free) == SLOTS:
"""


def checked(*arguments: object) -> list[str]:
    done = CliRunner().invoke(weft, ["check", *map(str, arguments)], standalone_mode=False)
    return [line for line in done.stdout.splitlines() if line.startswith("[") or "missing:" in line]


def test_the_solution_reaches_all_goals() -> None:
    assert [line[:3] for line in checked("--lab", 21, "--solution")] == ["[x]"] * 5


def test_a_student_is_told_which_step_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    CliRunner().invoke(weft, ["labs", "copy", "21", str(folder)])
    goals = checked(folder)
    assert sum(line.startswith("[ ]") for line in goals) == 5
    assert "NotImplementedError: step 1: push, raised by h3" in goals[1]
    solution = (LAB / "solution" / "parameter_server.py").read_text()
    assert KEPT_BUSY in solution
    assert ONE_BUSY in (folder / "parameter_server.py").read_text()
    (folder / "parameter_server.py").write_text(solution.replace(KEPT_BUSY, ONE_BUSY))
    goals = checked(folder)
    assert [line[:3] for line in goals if line.startswith("[")] == ["[x]"] * 3 + ["[ ]"] * 2
