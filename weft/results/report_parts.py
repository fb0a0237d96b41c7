"""Parts of a page: tables, and figures that assets/page.js in `weft/report/` draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from weft.quantities.units import PS_PER_US

Cell = str | int | float
MOST_ROWS = 50
_TIME_CURVES = 8
"""Curves over time that are drawn before readers choose others."""


class _Part:
    content: ClassVar[str] = "rows"
    """The field without which there is nothing to show."""

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to show; such parts are left out."""
        return not getattr(self, self.content)


@dataclass
class ReportTable(_Part):
    """A heading, columns and rows; `note` says what is left out, or what a column means."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Axis:
    """An axis: its title, and the unit of its values, which a pointer's label shows."""

    title: str
    unit: str = ""
    scale: Literal["linear", "log", "category"] = "linear"


@dataclass(frozen=True)
class Curve:
    """Points in their order; a name for the legend.

    `error` has half the length of each point's error bar, None for a point without one.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    error: Sequence[float | None] | None = None


@dataclass(frozen=True)
class CurveFigure(_Part):
    """Curves over numbers, or bars over categories; `points` lie behind them, unconnected.

    `text` says what is shown, `note` what is left out. Curves after the first `drawn` are drawn once a reader chooses
    them; None: all are drawn.
    """

    content = "curves"

    title: str
    x: Axis
    y: Axis
    curves: Sequence[Curve]
    points: Curve | None = None
    text: str = ""
    note: str = ""
    drawn: int | None = None

    def data(self) -> dict[str, Any]:
        """Return what page.js draws, as plain data."""
        drawn = {name: value for name, value in asdict(self).items() if name not in ("title", "text", "note")}
        # Few curves have error bars: pages of the others need not say that they have none.
        drawn["curves"] = [{key: value for key, value in each.items() if value is not None} for each in drawn["curves"]]
        return {"drawing": "curves", **drawn}


@dataclass(frozen=True)
class TimeCurve:
    """Samples over time, in µs of emulated time; curves of one number share a colour, or a pattern of dashes."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int
    style: int


@dataclass(frozen=True)
class TimeFigure(_Part):
    """Curves over one time axis; a page has one cursor over all such figures, and they zoom together.

    A sample holds until the next one ("before"), or since the one before it ("after"). `text` and `note` as of curves.
    """

    content = "curves"

    title: str
    y: Axis
    holds: Literal["before", "after"]
    curves: Sequence[TimeCurve]
    text: str = ""
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return what page.js draws, as plain data."""
        curves = [asdict(each) for each in self.curves]
        # The same curves of every run.
        alike = max(1, len({each.colour for each in self.curves}))
        drawn = max(1, _TIME_CURVES // alike) * alike
        return {"drawing": "times", "y": asdict(self.y), "holds": self.holds, "curves": curves, "drawn": drawn}


@dataclass(frozen=True)
class BarFigure(_Part):
    """A bar for each of `rows`, stacked from `parts`, each with a value per row; `text` and `note` as of curves."""

    title: str
    axis: Axis
    rows: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    text: str = ""
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return what page.js draws, as plain data."""
        return {"drawing": "bars", "axis": asdict(self.axis), "rows": self.rows, "parts": self.parts}


@dataclass
class Spans:
    """Spans of time in rows: the row, the beginning and the length of each, in µs."""

    rows: list[str] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    length: list[float] = field(default_factory=list)

    def add(self, row: str, begins: NDArray[np.float64], ends: NDArray[np.float64]) -> None:
        """Add spans of a row."""
        self.rows += [row] * len(begins)
        self.base += begins.tolist()
        self.length += (ends - begins).tolist()


@dataclass(frozen=True)
class SpanFigure(_Part):
    """Rows over time, with spans of each of several kinds; `text` and `note` as of curves."""

    content = "spans"

    title: str
    rows: Sequence[str]
    spans: Mapping[str, Spans]
    text: str = ""
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return what page.js draws, as plain data."""
        bars = [{"kind": kind, **asdict(spans)} for kind, spans in self.spans.items()]
        return {"drawing": "spans", "rows": self.rows, "bars": bars}


ReportPart = ReportTable | CurveFigure | TimeFigure | BarFigure | SpanFigure


def shown_of(shown: int, of: int, which: str) -> str:
    """Return a note on rows that are left out, "" if there are none."""
    return f"{shown} of {of}: {which}" if shown < of else ""


def microseconds(time_ps: int) -> float:
    """Return a time as cells show it."""
    return round(time_ps / PS_PER_US, 3)
