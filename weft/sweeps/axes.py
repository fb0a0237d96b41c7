"""Which values a sweep gives to which parameters.

A sweep runs every combination of its axes. An axis is a list of assignments: of one parameter (grid), of several that
change together (zip), or as they are listed (points).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ruamel.yaml
import ruamel.yaml.error

from weft.errors import BadInputError

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)\Z")
SEED = "seed"
"""The parameter that repetitions of a run differ in."""
MOST_REPETITIONS = 10_000
_LARGEST_SEED = 2**63 - 1
MAX_RANGE = 100_000
"""Values that a range such as 1..5 may stand for."""

Assignment = dict[str, Any]
"""Values by the dotted paths of parameters."""


@dataclass(frozen=True)
class Axis:
    """One dimension of a sweep: `assignments` are tried in order. Relative paths are below `folder`."""

    assignments: tuple[Assignment, ...]
    folder: Path = field(default=Path())

    @property
    def keys(self) -> tuple[str, ...]:
        """The parameters that the axis sets, in order of appearance."""
        return tuple(dict.fromkeys(key for assignment in self.assignments for key in assignment))


def grid_axis(key: str, values: Any, place: str) -> Axis:
    """Return the axis of one parameter.

    Args:
        key: its dotted path.
        values: a list; "1..5" stands for the integers from 1 to 5, by itself or within the list. A single value
            is a list of one.
        place: where this was given, for errors.

    Raises:
        BadInputError: there is no value, or one twice.
    """
    assignments = tuple({key: value} for value in _values(values, f"{place}: {key}"))
    return _checked(Axis(assignments), place)


def zip_axis(columns: Mapping[str, Any], place: str) -> Axis:
    """Return the axis of parameters that change together: first values, second values, and so on.

    Raises:
        BadInputError: as `grid_axis`, or the parameters have different numbers of values.
    """
    lists = {key: _values(values, f"{place}: {key}") for key, values in columns.items()}
    if len({len(values) for values in lists.values()}) > 1:
        counts = ", ".join(f"{key} has {len(values)}" for key, values in lists.items())
        raise BadInputError(f"what is zipped has as many values each; {counts}", place=place)
    rows = zip(*lists.values(), strict=True)
    return _checked(Axis(tuple(dict(zip(lists, row, strict=True)) for row in rows)), place)


def points_axis(points: Sequence[Any], place: str) -> Axis:
    """Return the axis of assignments as they are listed; raises BadInputError as `grid_axis`."""
    for index, point in enumerate(points):
        if not isinstance(point, Mapping) or not point:
            raise BadInputError(f"must be a mapping of parameters to values, is '{point}'", place=f"{place}[{index}]")
    return _checked(Axis(tuple({str(key): value for key, value in point.items()} for point in points)), place)


def repeat_axis(first: int, count: Any, place: str) -> Axis:
    """Return the axis of the seeds first, first + 1, … for `count` runs; raises BadInputError for a wrong count."""
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_REPETITIONS:
        raise BadInputError(f"'{count}' is no number of repetitions", place=place, valid=f"2 to {MOST_REPETITIONS}")
    if first + count - 1 > _LARGEST_SEED:
        raise BadInputError(
            f"{count} seeds from {first} on end beyond the largest seed", place=place, valid=f"0 to {_LARGEST_SEED}"
        )
    return Axis(tuple({SEED: seed} for seed in range(first, first + count)))


def parse_assignment(text: str, place: str) -> tuple[str, list[Any]]:
    """Return key and values of `key=v1,v2`, as YAML writes them in a list.

    Raises:
        BadInputError: there is no `=`, no key, no value, or the values are no YAML.
    """
    key, equals, values = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise BadInputError(f"{place} '{text}': is not KEY=VALUE,VALUE…, such as fabric.spines=2,4,8 or seed=1..5")
    try:
        parsed = ruamel.yaml.YAML(typ="safe", pure=True).load(f"[{values}]")
    except ruamel.yaml.error.YAMLError:
        parsed = None
    if not isinstance(parsed, list):
        raise BadInputError(f"{place} '{text}': '{values}' is not a list of values with commas between them")
    return key, parsed


def require_distinct(axes: Iterable[Axis], place: str) -> None:
    """Check that no parameter is set by two axes; raises BadInputError."""
    seen: set[str] = set()
    for axis in axes:
        for key in axis.keys:
            if key in seen:
                raise BadInputError(f"'{key}' is given twice", place=place)
        seen.update(axis.keys)


def _values(values: Any, place: str) -> list[Any]:
    listed = list(values) if isinstance(values, Sequence | range) and not isinstance(values, str) else [values]
    return [value for each in listed for value in _expanded(each, place)]


def _expanded(value: Any, place: str) -> Iterable[Any]:
    match = _RANGE.match(value) if isinstance(value, str) else None
    if match is None:
        return [value]
    first, last = int(match.group(1)), int(match.group(2))
    if not 0 <= last - first < MAX_RANGE:
        raise BadInputError(
            f"the range {value} stands for {max(0, last - first + 1)} values",
            place=place,
            valid=f"1 to {MAX_RANGE}",
        )
    return range(first, last + 1)


def _checked(axis: Axis, place: str) -> Axis:
    if not axis.assignments:
        raise BadInputError("has no values", place=place)
    seen: set[str] = set()
    for assignment in axis.assignments:
        known = json.dumps(assignment, sort_keys=True, default=str)
        if known in seen:
            raise BadInputError(f"{describe(assignment)} is given twice", place=place)
        seen.add(known)
    return axis


def describe(assignment: Mapping[str, Any]) -> str:
    """Return `key=value, key=value`."""
    return ", ".join(f"{key}={plain_text(value)}" for key, value in assignment.items())


def plain_text(value: Any) -> str:
    """Return a value as a table shows it: JSON for lists and mappings, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else json.dumps(value, default=str)
