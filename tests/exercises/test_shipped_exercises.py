"""Exercises that ship: their solutions reach all goals, and what a student starts from does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from weft.exercises import Work, exercise_of, outcomes, starter_and_solution
from weft.labs.folder import copy_lab
from weft.system.shipped_labs import CHECK_FILE, SOLUTION, find_lab, shipped_labs

WITH_EXERCISE = [lab for lab in shipped_labs() if (lab.folder / CHECK_FILE).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("lab", WITH_EXERCISE, ids=lambda lab: lab.name)
def test_the_solution_reaches_all_goals(lab, tmp_path: Path) -> None:
    starter_and_solution(lab, tmp_path / "work")
    assert {each.goal.text: each.missing for each in outcomes(exercise_of(lab), Work(tmp_path / "work"))} == {
        goal.text: None for goal in exercise_of(lab).goals
    }


@pytest.mark.parametrize("lab", WITH_EXERCISE, ids=lambda lab: lab.name)
def test_a_student_starts_without_solution_and_reaches_nothing(lab, tmp_path: Path) -> None:
    copy_lab(lab, tmp_path / "work", answers=False)
    assert not (tmp_path / "work" / SOLUTION).exists()
    assert not (tmp_path / "work" / CHECK_FILE).exists()
    found = list(outcomes(exercise_of(lab), Work(tmp_path / "work")))
    assert all(each.missing and each.goal.hint for each in found)


@pytest.mark.parametrize(
    ("start", "missing"),
    [
        ("leaf-spine.yaml", {3: "p0l0 is the only switch that h0 is at"}),
        ("oversubscribed.yaml", {3: "p0l0 is the only switch that h0 is at"}),
        ("dragonfly.yaml", {2: "50 Gb/s", 3: "p0r0 is the only switch"}),
        ("fat-tree.yaml", {3: "p0l0 is the only switch", 4: "$11,289 and 205 W"}),
        ("scenario.yaml", {0: "has 64 accelerators", 3: "only switch", 4: "$"}),
    ],
)
def test_each_design_of_lab_20_lacks_something(start: str, missing: dict[int, str], tmp_path: Path) -> None:
    lab = find_lab("20")
    shutil.copy(lab.folder / start, tmp_path / "design.yaml")
    found = list(outcomes(exercise_of(lab), Work(tmp_path)))
    assert {number for number, each in enumerate(found) if each.missing} == set(missing)
    for number, text in missing.items():
        assert text in str(found[number].missing)
