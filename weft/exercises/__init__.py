"""Exercises of labs: goals, and checks that say what a student's folder lacks to reach them."""

from weft.exercises.exercise import Exercise, Goal, Missing, Outcome, outcomes
from weft.exercises.shipped import exercise_of, lab_of_folder, starter_and_solution
from weft.exercises.targets import (
    ANSWERS,
    Figure,
    at_least,
    at_most,
    kept,
    named,
    number_in_answers,
    predicted,
)
from weft.exercises.work import Work

__all__ = [
    "ANSWERS",
    "Exercise",
    "Figure",
    "Goal",
    "Missing",
    "Outcome",
    "Work",
    "at_least",
    "at_most",
    "exercise_of",
    "kept",
    "lab_of_folder",
    "named",
    "number_in_answers",
    "outcomes",
    "predicted",
    "starter_and_solution",
]
