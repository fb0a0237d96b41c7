"""Results of a program: what it reports, and how long its requests took."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.rdma.errors import VerbsError

MAX_NAMES = 256
MAX_POINTS = 1 << 16
MAX_TEXT = 256


class Operation(NamedTuple):
    """A request that has ended: libibverbs' names of its opcode and status, its bytes, emulated times.

    `posted_ps` is 0 for receives.
    """

    opcode: str
    status: str
    bytes: int
    posted_ps: int
    completed_ps: int


class Point(NamedTuple):
    """A point of a series."""

    x: float
    y: float


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_TEXT or not name.isprintable():
        raise VerbsError(f"{name!r} names no value", valid=f"up to {MAX_TEXT} printable characters")
    return name


def _checked_number(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise VerbsError(f"{name} is {value!r}", valid="a finite number")
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


@dataclass
class ProgramReport:
    """Values and series by name, in the order in which they came, and operations."""

    values: dict[str, float | str] = field(default_factory=dict)
    series: dict[str, list[Point]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def set_value(self, name: str, value: float | str) -> None:
        """See `Device.report`. VerbsError: the name or the value cannot be shown, or there are too many."""
        if isinstance(value, str):
            if len(value) > MAX_TEXT or not value.isprintable():
                raise VerbsError(f"{name}: a text of {len(value)}", valid=f"{MAX_TEXT} printable characters")
        else:
            value = _checked_number(name, value)
        if _checked_name(name) not in self.values and len(self.values) >= MAX_NAMES:
            raise VerbsError(f"{name}: more than {MAX_NAMES} values")
        self.values[name] = value

    def add_point(self, name: str, x: float, y: float) -> None:
        """See `Device.record`. VerbsError: as `set_value`."""
        point = Point(_checked_number(name, x), _checked_number(name, y))
        if _checked_name(name) not in self.series and len(self.series) >= MAX_NAMES:
            raise VerbsError(f"{name}: more than {MAX_NAMES} series")
        points = self.series.setdefault(name, [])
        if len(points) >= MAX_POINTS:
            raise VerbsError(f"{name}: more than {MAX_POINTS} points")
        points.append(point)
