"""`weft check`: what it says of a folder, and what it refuses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import weft
from weft.errors import BadInputError
from weft.exercises import Exercise, Goal, Missing, Work, exercise_of, outcomes, starter_and_solution
from weft.system.shipped_labs import ShippedLab, find_lab

SMALL = """
fabric: {planes: 1, leaves: 2, spines: 1, hosts_per_leaf: 1}
traffic: [{collective: allreduce, algorithms: [ring], sizes: [4KiB], dtype: int32}]
"""


def check(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(weft, ["check", *map(str, arguments)], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.return_value, done.stdout


def test_a_folder_is_told_item_by_item_what_it_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    CliRunner().invoke(weft, ["labs", "copy", "20", str(folder)])
    code, text = check(folder)
    assert code == 1
    assert text.splitlines()[0] == "lab 20-topology-design"
    assert text.count("[ ]") == 5
    assert text.count(f"there is no design.yaml in {folder}") == 1
    assert text.count("missing: the same") == 4
    assert text.endswith("0 of 5 goals reached\n")
    (folder / "design.yaml").write_text((folder / "leaf-spine.yaml").read_text())
    code, text = check(folder)
    assert (code, text.count("[x]")) == (1, 4)
    (folder / "design.yaml").write_text("fabric: {leafs: 4}\n")
    _, text = check(folder)
    assert f"{folder / 'design.yaml'}:1: unknown key 'fabric.leafs'; did you mean 'leaves'?" in text
    code, text = check("--lab", "20", "--solution")
    assert (code, text.count("[x]")) == (0, 5)


def test_a_scenario_without_what_the_exercise_is_about_lacks_it(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    CliRunner().invoke(weft, ["labs", "copy", "21", str(folder)])
    (folder / "scenario.yaml").write_text(SMALL)
    code, text = check(folder)
    assert (code, text.count("[ ]")) == (1, 5)
    assert text.count("missing: scenario.yaml: fabric.hosts_per_leaf is 1, in the lab's 2\n") == 1
    lab = find_lab("21").folder
    shutil.copy(lab / "scenario.yaml", folder)
    with (folder / "scenario.yaml").open("a") as file:
        file.write("  - {incast: h0, bytes_per_sender: 4KiB}\n")
    assert "scenario.yaml: traffic.1.at is 0, in the lab's missing" in check(folder)[1]


def test_words_of_a_file_look_like_nothing_of_the_check(tmp_path: Path) -> None:
    lab = find_lab("05")
    starter_and_solution(lab, tmp_path / "work")
    (tmp_path / "work" / "answers.yaml").write_text('deepest_queue: "p0\\n[x] all goals\\e[2J"\n')
    code, text = check(tmp_path / "work", "--lab", "05")
    assert code == 1
    assert "    missing: deepest_queue: p0\n    [x] all goals\\x1b[2J is not the port" in text


def test_what_is_no_exercise_is_refused(tmp_path: Path) -> None:
    with refused(BadInputError, problem="not a copy of a lab: it has no"):
        check(tmp_path)
    with pytest.raises(BadInputError, match=r"lab 'mine' has no exercise \(valid: 01-allreduce, "):
        exercise_of(ShippedLab("mine", "Mine", tmp_path))
    os.mkfifo(tmp_path / ".weft-lab")
    with refused(BadInputError, place=".weft-lab", problem="there is no lab ''"):
        check(tmp_path)
    (tmp_path / ".weft-lab").unlink()
    (tmp_path / ".weft-lab").write_text("../../etc\n")
    with refused(BadInputError, place=".weft-lab", problem="there is no lab '"):
        check(tmp_path)
    (tmp_path / ".weft-lab").write_bytes(b"\xff\xfe")
    with refused(BadInputError, problem="not a copy of a lab"):
        check(tmp_path)


def test_work_is_done_once_and_fails_the_same_again(tmp_path: Path) -> None:
    said: list[str] = []
    work = Work(tmp_path, said.append)
    (tmp_path / "own.yaml").write_text(SMALL)
    assert work.run("own.yaml") is work.run("own.yaml")
    assert said == ["running own.yaml"]
    assert work.run("own.yaml").collectives[0].wrong == 0
    for _ in range(2):
        with pytest.raises(Missing, match=r"there is no other\.yaml"):
            work.cost("other.yaml")
    (tmp_path / "large.yaml").write_text("fabric: {planes: 1, leaves: 8, spines: 1, hosts_per_leaf: 33}\n")
    with pytest.raises(Missing, match=r"large\.yaml has 264 hosts; the check runs up to 256"):
        work.run("large.yaml")


def test_a_fault_of_the_check_itself_is_no_fault_of_the_student(tmp_path: Path) -> None:
    def broken(_work: Work) -> None:
        raise KeyError("a fault of the check")

    with pytest.raises(KeyError):
        list(outcomes(Exercise([Goal("", "", broken)]), Work(tmp_path)))
