"""What an exercise is: goals, each with a check and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from weft.errors import WeftError
from weft.exercises.work import Missing, Work

__all__ = ["Exercise", "Goal", "Missing", "Outcome", "outcomes"]


@dataclass(frozen=True)
class Goal:
    """A thing to be reached.

    Attributes:
        text: what, as a statement that is true in the end.
        hint: what to look at where it is not yet.
        check: looks at a student's work; raises Missing with what is missing.

    """

    text: str
    hint: str
    check: Callable[[Work], None]


@dataclass(frozen=True)
class Exercise:
    """A lab's goals, in the order in which people reach them. `labs/NAME/check.py` has it as EXERCISE."""

    goals: Sequence[Goal]


@dataclass(frozen=True)
class Outcome:
    """A goal and what is missing; None where it is reached."""

    goal: Goal
    missing: str | None


def outcomes(exercise: Exercise, work: Work) -> Iterator[Outcome]:
    """Yield the outcome of each goal. What is wrong with a file or a run is missing, too."""
    for goal in exercise.goals:
        try:
            goal.check(work)
        except (Missing, WeftError) as problem:
            yield Outcome(goal, str(problem))
        else:
            yield Outcome(goal, None)
