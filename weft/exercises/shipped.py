"""Exercises that ship with labs: finds them, and the lab that a folder was copied from."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from weft.errors import BadInputError
from weft.exercises.exercise import Exercise
from weft.labs.folder import copy_lab
from weft.system.shipped_labs import (
    CHECK_FILE,
    LAB_MARK,
    SOLUTION,
    ShippedLab,
    find_lab,
    shipped_labs,
)

_MOST_MARK_CHARACTERS = 100


def exercise_of(lab: ShippedLab) -> Exercise:
    """Return a lab's exercise. Raises BadInputError, which lists the labs with exercises."""
    path = lab.folder / CHECK_FILE
    if not path.is_file():
        valid = ", ".join(each.name for each in shipped_labs() if (each.folder / CHECK_FILE).is_file())
        raise BadInputError(f"lab '{lab.name}' has no exercise", valid=valid)
    # Loaded by path: labs are not a package, and a student's folder may have modules with any name.
    spec = importlib.util.spec_from_file_location(f"weft_exercise_{lab.name.replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    exercise: Exercise = module.EXERCISE
    return exercise


def lab_of_folder(folder: Path) -> ShippedLab:
    """Return the lab from which `weft labs copy` made a folder. Raises BadInputError."""
    mark = folder / LAB_MARK
    try:
        # A submission may have a pipe there, and reading it would wait for a writer.
        descriptor = os.open(mark, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, encoding="utf-8") as file:
            name = file.read(_MOST_MARK_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            f"{folder} is not a copy of a lab: it has no {LAB_MARK} (make one: weft labs copy NAME; or give --lab NAME)"
        ) from None
    try:
        return find_lab(name)
    except BadInputError as error:
        raise BadInputError(error, place=mark) from None


def starter_and_solution(lab: ShippedLab, target: Path) -> None:
    """Copy a lab to `target`, which must not exist, with its solution in place of a student's files."""
    copy_lab(lab, target, answers=False)
    shutil.copytree(lab.folder / SOLUTION, target, dirs_exist_ok=True)
