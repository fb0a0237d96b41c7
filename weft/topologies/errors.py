"""The error that every refused topology raises."""

from __future__ import annotations

from weft.errors import Refusal
from weft.quantities.units import shown

MOST_PATH_CHARACTERS = 1024
"""Longest path of a file of a topology."""


class TopologyError(Refusal, ValueError):
    """A topology parameter or name is not valid; the message says which, its value and the valid choices."""


def nearest_multiples(value: int, step: int) -> str:
    """Return the multiples of `step` next to a value that is none, in words: `multiples of 8, such as 16 or 24`."""
    below = value // step * step
    nearest = " or ".join(str(each) for each in (below, below + step) if each > 0)
    return f"multiples of {step}, such as {nearest}"


def in_file(path: object, error: TopologyError) -> TopologyError:
    """Return the error with its file's path in front of its place."""
    if not error.place:
        return TopologyError(f"{path}, {error.problem}", valid=error.valid, hint=error.hint)
    return TopologyError(error.moved(f"{path}, {error.place}"))


def require_path(path: object) -> None:
    """Raise TopologyError for a path too long for an error message; no file has such a name."""
    if len(str(path)) > MOST_PATH_CHARACTERS:
        raise TopologyError(f"{shown(str(path))} is too long a path", valid=f"{MOST_PATH_CHARACTERS} characters")


def require_range(name: str, value: float, low: int, high: int, why: str = "") -> int:
    """Return `value` if it is an integer in [low, high].

    Raises:
        TopologyError: naming the parameter, its value and the valid range.

    """
    reason = f"; {why}" if why else ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TopologyError(f"{name}={value!r} is not a whole number", valid=f"{low} to {high}{reason}")
    if not low <= value <= high:
        raise TopologyError(f"{name}={value} is out of range", valid=f"{low} to {high}{reason}")
    return value
