"""Exercises of labs: goals that a student's folder reaches or not, and what is missing where it does not."""

from weft.exercises.exercise import Exercise, Goal, Missing, Outcome, outcomes
from weft.exercises.shipped import exercise_of, lab_of_folder, starter_and_solution
from weft.exercises.work import Work

__all__ = [
    "Exercise",
    "Goal",
    "Missing",
    "Outcome",
    "Work",
    "exercise_of",
    "lab_of_folder",
    "outcomes",
    "starter_and_solution",
]
