"""Goals shared by many exercises: a figure within a bound, a prediction confirmed by a run, unchanged settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from weft.exercises.exercise import Goal
from weft.exercises.work import AS_IT_IS, Missing, Settings, Work
from weft.scenario import Scenario

_WITHOUT_EFFECT = {"name", "clock", "dilation", "links", "grpc", "workers", "observe"}
"""Keys of a scenario that do not affect the figures of a virtual-time run."""
ANSWERS = "answers.yaml"
"""File in a student's folder with predictions, by name."""
_LARGEST_ANSWER = 1e15


@dataclass(frozen=True)
class Figure:
    """A figure of a student's work: its name, the function that computes it, and its unit."""

    name: str
    found: Callable[[Work], float]
    unit: str = ""

    def shown(self, value: float) -> str:
        """Return a value as text with the unit."""
        return f"{value:,.6g} {self.unit}".rstrip()


def at_most(figure: Figure, bound: float, hint: str) -> Goal:
    """Return the goal that a figure is no larger than a bound."""

    def check(work: Work) -> None:
        found = figure.found(work)
        if not found <= bound:
            raise Missing(f"{figure.name}: {figure.shown(found)}; the target is {figure.shown(bound)} or less")

    return Goal(f"{figure.name}: at most {figure.shown(bound)}", hint, check)


def at_least(figure: Figure, bound: float, hint: str) -> Goal:
    """Return the goal that a figure is no smaller than a bound."""

    def check(work: Work) -> None:
        found = figure.found(work)
        if not found >= bound:
            raise Missing(f"{figure.name}: {figure.shown(found)}; the target is {figure.shown(bound)} or more")

    return Goal(f"{figure.name}: at least {figure.shown(bound)}", hint, check)


def predicted(key: str, figure: Figure, tolerance: float, hint: str) -> Goal:
    """Return the goal that answers.yaml predicts a figure of a run, within a relative tolerance.

    If it does not, the message says how far off the answer is, without giving the figure away.
    """

    def check(work: Work) -> None:
        answer = number_in_answers(work, key)
        found = figure.found(work)
        off = abs(answer - found)
        if not off <= tolerance * abs(found):  # .nan is no answer either
            raise Missing(f"{key}: {answer:,} is {_far(answer, found)} what a run finds")

    return Goal(
        f"{ANSWERS} has {key}: {figure.name}"
        + (f", in {figure.unit}" if figure.unit else "")
        + (f" (within {100 * tolerance:g} %)" if tolerance else ""),
        hint,
        check,
    )


def _far(answer: float, found: float) -> str:
    """Return how far off an answer is, to one digit, as text."""
    factor = answer / found if found else 0.0
    if not 0 < factor < math.inf:
        return "not"
    rough = float(f"{factor:.1g}")  # format() would write 100 as 1e+02
    return f"{rough:,g} times" if factor >= 2 or factor <= 0.5 else "near, but not within the tolerance of,"


def number_in_answers(work: Work, key: str) -> float:
    """Return the number under a key in answers.yaml. Raises Missing."""
    answer = work.answers(ANSWERS).get(key)
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        raise Missing(_no_answer(work, key, "a number"))
    if abs(answer) > _LARGEST_ANSWER:
        raise Missing(f"{key} is larger than anything here")
    return answer


def _no_answer(work: Work, key: str, wanted: str) -> str:
    """Return the message for a missing answer, or one of the wrong kind."""
    answers = work.answers(ANSWERS)
    if answers.get(key) is None:
        return f"{ANSWERS} has no {key}"
    return f"{ANSWERS}: {key} is {wanted}, not {str(answers[key])[:60]!r}"


def named(key: str, what: str, found: Callable[[Work], str], hint: str) -> Goal:
    """Return the goal that answers.yaml has a name that a run determines, such as a port's."""

    def check(work: Work) -> None:
        answer = work.answers(ANSWERS).get(key)
        if not isinstance(answer, str):
            raise Missing(_no_answer(work, key, "a name"))
        if answer.strip() != found(work):
            raise Missing(f"{key}: {answer[:60]} is not {what}")

    return Goal(f"{ANSWERS} names {what}: {key}", hint, check)


def kept(
    name: str,
    shipped: Path,
    keys: Sequence[str] = (),
    free: Sequence[str] = (),
    settings: Settings = AS_IT_IS,
) -> Goal:
    """Return the goal that keys of a scenario are the same as in one that ships with the lab.

    Files of the folder that they name must be unchanged, too. Goals with a bound on a figure check this first, because
    the bound holds only for that network and that traffic.

    Args:
        name: the student's file.
        shipped: the lab's file.
        keys: keys of a scenario, such as `fabric`; by default all that affect results.
        free: patterns of dotted keys below these that may differ, such as `traffic.*.bucket`.
        settings: changes of the lab's scenario, by dotted key.
    """
    same = " and ".join((", ".join(keys[:-1]), keys[-1]) if len(keys) > 1 else keys) or "everything"
    changed = "".join(f" with {key}: {value}" for key, value in settings.items())
    may_differ = f" but for {', '.join(free)}" if free else ""

    def check(work: Work) -> None:
        own = _leaves(work.scenario(name), keys, free, work.file(name).parent)
        lab = _leaves(work.scenario(str(shipped), settings), keys, free, shipped.parent)
        for key in dict.fromkeys((*lab, *own)):
            found, expected = own.get(key), lab.get(key)
            if found == expected:
                continue
            if isinstance(found, _File) and isinstance(expected, _File) and found.name == expected.name:
                raise Missing(f"{name}: {key} names {found}, which is not as in the lab")
            theirs = "the exercise" if key in settings else shipped.name if shipped.name != name else "the lab's"
            raise Missing(
                f"{name}: {key} is {_shown(own.get(key, 'missing'))}, in {theirs} {_shown(lab.get(key, 'missing'))}"
            )

    return Goal(
        f"{name} has {same} of {shipped.name}{changed}{may_differ}",
        f"cp {shipped.name} {name}, and change what the page asks for",
        check,
    )


def _shown(value: object) -> str:
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class _File:
    """A file of a folder, or a class in one: FILE:CLASS."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


def _file_or_text(text: str, folder: Path) -> _File | str:
    """Return a file of the folder with its content; any other text unchanged."""
    inside = text.removeprefix(f"{folder.resolve()}/")
    path = folder / inside.rpartition(":")[0] if ":" in inside else folder / inside
    if inside == text or not path.is_file():
        return inside
    return _File(inside, path.read_bytes())


def _leaves(scenario: Scenario, keys: Sequence[str], free: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return all values below some keys, by dotted key; files of the folder as `_File`."""
    plain = scenario.model_dump(mode="json", by_alias=True)
    keys = keys or [key for key in plain if key not in _WITHOUT_EFFECT]

    def below(key: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for name, each in items:
                yield from below(f"{key}.{name}", each)
        elif not any(fnmatchcase(key, each) for each in free):
            yield key, _file_or_text(value, folder) if isinstance(value, str) else value

    return {dotted: value for key in keys for dotted, value in below(key, plain[key])}
