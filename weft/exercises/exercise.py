"""The definition of an exercise: goals, each with a check and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from weft.errors import WeftError
from weft.exercises.work import Missing, Work

__all__ = ["Exercise", "Goal", "Missing", "Outcome", "outcomes"]


@dataclass(frozen=True)
class Goal:
    """A goal of an exercise.

    Attributes:
        text: the goal, as a statement that is true once it is reached.
        hint: advice while it is not reached.
        check: checks a student's work; raises Missing with the missing part.

    """

    text: str
    hint: str
    check: Callable[[Work], None]


@dataclass(frozen=True)
class Exercise:
    """A lab's goals, in the order in which students reach them. `labs/NAME/check.py` defines it as EXERCISE."""

    goals: Sequence[Goal]


@dataclass(frozen=True)
class Outcome:
    """A goal and what is missing; None if it is reached."""

    goal: Goal
    missing: str | None


def outcomes(exercise: Exercise, work: Work) -> Iterator[Outcome]:
    """Yield the outcome of each goal. Errors in a file or a run also count as missing."""
    for goal in exercise.goals:
        try:
            goal.check(work)
        except (Missing, WeftError) as problem:
            yield Outcome(goal, str(problem))
        else:
            yield Outcome(goal, None)
