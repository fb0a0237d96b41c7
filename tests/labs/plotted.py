"""Reads the curves and bars of a plot's SVG, and compares them with data."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy as np
from numpy.typing import NDArray

import weft

_SVG = "{http://www.w3.org/2000/svg}"
_BAR_HEIGHT = "16"
_PIXELS = 0.02
"""Half of the last digit of a place in the picture, and the rounding of the other end of an axis."""

Points = NDArray[np.float64]


def polylines(svg: str) -> list[Points]:
    """Return the vertices of each curve, in pixels, as an array of shape (n, 2)."""
    return [
        np.array([[float(value) for value in pair.split(",")] for pair in each.attrib["points"].split()])
        for each in ElementTree.fromstring(svg).iter(f"{_SVG}polyline")
    ]


def bar_widths(svg: str) -> list[float]:
    """Return the widths of all bars, in pixels, curve by curve."""
    rectangles = ElementTree.fromstring(svg).iter(f"{_SVG}rect")
    return [float(each.attrib["width"]) for each in rectangles if each.attrib["height"] == _BAR_HEIGHT]


def difference_of_curves(
    svg: str, curves: Sequence[tuple[Sequence[float], Sequence[float]]], log_x: bool, log_y: bool, is_step: bool
) -> str:
    """Return how the picture's curves differ from these points, on axes common to all; "" if they do not."""
    drawn = [points[::2] if is_step else points for points in polylines(svg)]
    if [len(points) for points in drawn] != [len(x) for x, _ in curves]:
        return f"{[len(points) for points in drawn]} points, not {[len(x) for x, _ in curves]}"
    for side, is_log, is_upward in ((0, log_x, False), (1, log_y, True)):
        values = np.concatenate([np.asarray(curve[side], float) for curve in curves])
        values = np.log10(values) if is_log else values
        pixels = np.concatenate([points[:, side] for points in drawn])
        if np.ptp(values) == 0:
            if np.ptp(pixels):
                return f"equal values at {pixels}"
            continue
        slope, start = np.polyfit(values, pixels, 1)
        if (slope > 0) == is_upward:
            return f"the axis {side} is reversed"
        worst = float(np.abs(start + slope * values - pixels).max())
        if worst > _PIXELS:
            return f"a point is {worst} pixels from its place on axis {side}"
    return ""


def difference_of_bars(svg: str, values: Sequence[float]) -> str:
    """Return how the picture's bars differ from these values, curve by curve; "" if they do not."""
    widths, lengths = np.array(bar_widths(svg)), np.abs(np.array(values))
    if widths.shape != lengths.shape:
        return f"{len(widths)} bars, not {len(lengths)}"
    scale = widths.sum() / lengths.sum()
    worst = float(np.abs(widths - scale * lengths).max())
    return f"a bar is {worst} pixels too long or too short" if worst > _PIXELS else ""


def difference(svg: str, plot: weft.Plot) -> str:
    """Return how a picture differs from a plot's data; "" if it does not."""
    if plot.shape in ("bars", "stacked bars"):
        return difference_of_bars(svg, [value for curve in plot.curves for value in curve.y])
    log_x, log_y = plot.x_scale == "log", plot.y_scale == "log"
    points = []
    for curve in plot.curves:
        x = np.asarray(curve.x, float)
        kept = ((x > 0) | (not log_x)) & ((curve.y > 0) | (not log_y))
        points.append((x[kept], curve.y[kept]))
    return difference_of_curves(svg, points, log_x, log_y, plot.shape.startswith("step"))


def plot_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that plot results."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.startswith("import weft\n")]


def named_plots(source: str) -> Iterator[tuple[str, str]]:
    """Yield directory and title of each plot that a cell or a block of a page draws."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "weft.plot":
            directory, title = map(ast.literal_eval, node.args)
            yield directory, title


def check_plots(notebook: nbformat.NotebookNode, directory: Path) -> None:
    """Check that each plotting cell of an executed notebook shows the points of its run's results."""
    for cell in plot_cells(notebook):
        ((results, title),) = named_plots(cell.source)
        (shown,) = [output.data["image/svg+xml"] for output in cell.outputs if "data" in output]
        assert difference("".join(shown), weft.plot(directory / results, title)) == "", (results, title)
