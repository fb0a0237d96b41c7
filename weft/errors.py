"""Errors of Weft, with the exit code of the `weft` command for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


class Refusal(Exception):
    """An error about a value: `PLACE: PROBLEM (valid: VALID); HINT`, each part also an attribute.

    Attributes:
        place: the key, `file:line` or option that holds the value; "" if the error names none.
        problem: the rest of the message.
        valid: the valid values; "" if the error lists none.
        hint: a likely correction; "" if there is none.
    """

    def __init__(
        self,
        problem: str | Exception,
        *,
        place: object = "",
        valid: str | Iterable[object] = "",
        hint: str = "",
    ) -> None:
        """Compose the message, the only place that does so.

        An error as `problem` keeps its own place, after `place`, and its valid values unless `valid` is given.
        """
        if isinstance(problem, Refusal) and not valid:
            place = f"{place}: {problem.place}" if place and problem.place else place or problem.place
            valid, hint, problem = problem.valid, problem.hint, problem.problem
        self.place: str = str(place)
        self.problem: str = str(problem)
        self.valid: str = valid if isinstance(valid, str) else ", ".join(map(str, valid)) or "none"
        self.hint: str = hint
        before, after = self.place and f"{self.place}: ", self.valid and f" (valid: {self.valid})"
        super().__init__(f"{before}{self.problem}{after}{hint and f'; {hint}'}")

    def moved(self, place: str) -> Refusal:
        """Return the refusal with another place."""
        return Refusal(self.problem, place=place, valid=self.valid, hint=self.hint)


@contextmanager
def translated(
    kinds: type[Exception] | tuple[type[Exception], ...],
    to: Callable[..., Exception],
    *arguments: object,
    **keywords: object,
) -> Iterator[None]:
    """Raise an error of `kinds` as `to(*arguments, error, **keywords)`; a Refusal keeps its place and valid values."""
    try:
        yield
    except kinds as error:
        raise to(*arguments, error, **keywords) from None


class InvalidValueError(Refusal, ValueError):
    """A value that no more specific class refuses; pydantic reports it with the value's key."""


class WeftError(Refusal):
    """Base of all errors that the command reports without a traceback."""

    exit_code = 1


class CheckFailedError(WeftError):
    """A run finished with an incorrect result."""

    exit_code = 1


class DeadlockError(CheckFailedError):
    """Packets of a lossless fabric wait for each other for ever; `cycle` names the full buffers, hop by hop."""

    def __init__(self, problem: str, cycle: str) -> None:
        super().__init__(problem)
        self.cycle = cycle


class BadInputError(WeftError):
    """A scenario, P4 program, JSON or option value is invalid."""

    exit_code = 3


class EnvironmentLacksError(WeftError):
    """The machine lacks a requirement: root, a program, a kernel feature."""

    exit_code = 4
