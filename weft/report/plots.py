"""The curves and bars of a run's or sweep's report as arrays and SVG: `weft.plots` and `weft.plot`.

Heat maps and timelines need the report's page, where a reader can zoom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from weft.errors import BadInputError
from weft.hints import nearest_word
from weft.quantities.arrays import Floats
from weft.quantities.readable import counted
from weft.report.figures import FIGURES, Figure, all_figures
from weft.report.plot_svg import svg_of
from weft.report.run_directory import RunDirectory
from weft.report.sweep_page import charts_of_sweep, is_sweep
from weft.report.tables import parts_of_traffic
from weft.results.report_parts import BarFigure, CurveFigure, ReportPart, TimeFigure

Scale = Literal["linear", "log", "category"]
Shape = Literal["line", "step before", "step after", "bars", "stacked bars"]


# Arrays have no single answer to ==, and whole arrays are no answer in a console.
@dataclass(frozen=True, eq=False, repr=False)
class PlotCurve:
    """A curve or the bars of one colour.

    Attributes:
        name: its name in the legend.
        x: float64 of shape (n,), or n names if the plot's `x_scale` is "category".
        y: float64 of shape (n,).
    """

    name: str
    x: Floats | tuple[str, ...]
    y: Floats

    def __repr__(self) -> str:
        return f"<PlotCurve {self.name!r}: {counted(len(self.y), 'point')}>"


@dataclass(frozen=True, eq=False, repr=False)
class Plot:
    """A plot of results. Notebooks show it if it is the value of a cell.

    Attributes:
        title: its name, for `weft.plot`.
        x_title: title of the axis of `x`, with the unit.
        y_title: title of the axis of `y`, with the unit.
        curves: the data, as drawn: the report thins curves of more than 2,000 points and keeps their extremes.
        shape: how the points are joined; a "step before" holds each value until the next point, a "step after" since
            the previous one. Bars have one row for each `x`.
        x_scale: scale of `x`.
        y_scale: scale of `y`.
    """

    title: str
    x_title: str
    y_title: str
    curves: tuple[PlotCurve, ...]
    shape: Shape = "line"
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"

    def __repr__(self) -> str:
        return f"<Plot {self.title!r}: {counted(len(self.curves), 'curve')}; .svg() is the picture>"

    def svg(self) -> str:
        """Return the picture: an SVG document. Equal results give equal text."""
        return svg_of(self)

    def _repr_svg_(self) -> str:
        # IPython calls this method to show a value.
        return self.svg()


def plots(directory: str | Path) -> dict[str, Plot]:
    """Return all plots of a directory that `weft run` or `weft sweep` has written, by title.

    Raises:
        BadInputError: the directory has no results, or one of its files is damaged; names the file and the key or line.
    """
    path = Path(directory)
    found = _of_sweep(path) if is_sweep(path) else _of_run(RunDirectory.read(path))
    named: dict[str, Plot] = {}
    for plot_ in found:
        if not plot_.curves:
            continue
        title, number = plot_.title, 1
        while title in named:
            number += 1
            title = f"{plot_.title} ({number})"
        named[title] = plot_
    return named


def plot(directory: str | Path, title: str) -> Plot:
    """Return the plot of this title; `weft.plots` has all titles. Upper and lower case are the same.

    Raises:
        BadInputError: no plot has this title (lists the valid ones), or there is none; or as `weft.plots`.
    """
    found = {name.lower(): (name, each) for name, each in plots(directory).items()}
    if title.lower() not in found:
        titles = [name for name, _ in found.values()]
        if not titles:
            hint = "set observe.queues or observe.flows, or give a collective several sizes (docs/results.md#plots)"
            raise BadInputError("this run recorded no plots", place=directory, hint=hint)
        nearest = nearest_word(title, titles)
        hint = "" if nearest is None else f"did you mean '{nearest}'?"
        raise BadInputError(f"has no plot '{title}'", place=directory, valid=titles, hint=hint)
    return found[title.lower()][1]


def _of_run(run: RunDirectory) -> Iterator[Plot]:
    for part in parts_of_traffic(run).values():
        made = _of_part(part)
        if made is not None:
            yield made
    for name, figure in all_figures(run).items():
        if name in _AXES:
            yield _of_figure(name, figure)


def _of_sweep(directory: Path) -> Iterator[Plot]:
    for chart in charts_of_sweep(directory):
        for heading, figure in chart.panels.values():
            yield _of_curves(figure, f"{chart.title}, {heading}" if heading else chart.title)


def _of_part(part: ReportPart) -> Plot | None:
    if isinstance(part, CurveFigure):
        return _of_curves(part, part.title)
    if isinstance(part, TimeFigure):
        shape: Shape = "step before" if part.holds == "before" else "step after"
        return Plot(part.title, "time (µs)", part.y.title, _curves_of(part.curves), shape)
    if isinstance(part, BarFigure):
        rows = tuple(part.rows)
        bars = [PlotCurve(name, rows, _numbers(values)) for name, values in part.parts.items()]
        return Plot(part.title, "", part.axis.title, tuple(bars), "stacked bars", "category", "linear")
    return None


def _of_curves(figure: CurveFigure, title: str) -> Plot:
    is_category = figure.x.scale == "category"
    curves = _curves_of(figure.curves, is_category)
    # A bar on a logarithmic scale would begin anywhere, so bars always begin at 0.
    y_scale = "linear" if is_category else figure.y.scale
    return Plot(
        title, figure.x.title, figure.y.title, curves, "bars" if is_category else "line", figure.x.scale, y_scale
    )


def _curves_of(curves: Sequence[Any], is_category: bool = False) -> tuple[PlotCurve, ...]:
    return tuple(made for each in curves if len((made := _curve(each.name, each.x, each.y, is_category)).y))


def _curve(name: str, x: Sequence[Any], y: Sequence[float], is_category: bool = False) -> PlotCurve:
    values = _numbers(y)
    if is_category:
        return PlotCurve(name, tuple(map(str, x)), values)
    places = _numbers(x)
    # Values without a place on an axis, which damaged results may have.
    known = np.isfinite(places) & np.isfinite(values)
    return PlotCurve(name, places[known], values[known])


def _numbers(values: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64)


_TIME = "time (µs)"
# The report's page draws these by name (assets/page.js): titles of both axes, shape and scale of x.
_AXES: Mapping[str, tuple[str, str | None, Shape, Scale]] = {
    "queues": (_TIME, "waiting (kB)", "step before", "linear"),
    "rates": (_TIME, "rate (Gb/s)", "step after", "linear"),
    "memory": (_TIME, "held (kB)", "step before", "linear"),
    "int": (_TIME, "waiting (kB)", "step before", "linear"),
    "fct": ("completion time (µs)", "share of messages", "step before", "log"),
    "slowdown": ("slowdown", "share of messages", "step before", "log"),
    "state-registers": (_TIME, None, "step before", "linear"),
    "state-counted": (_TIME, None, "step before", "linear"),
    "state-entries": (_TIME, None, "step before", "linear"),
}


def _of_figure(name: str, figure: Figure) -> Plot:
    x_title, y_title, shape, scale = _AXES[name]
    curves = tuple(_curve(each["name"], each["x"], each["y"]) for each in figure["curves"])
    return Plot(FIGURES[name][0], x_title, y_title or str(figure["unit"]), curves, shape, scale)
