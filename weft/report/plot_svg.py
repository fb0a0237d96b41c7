"""Draws a plot as SVG: axes, curves or bars, and a legend."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weft.topologies.draw_shapes import PLANE_COLOURS, LegendEntry, document, escaped, quoted

if TYPE_CHECKING:
    from weft.report.plots import Plot, PlotCurve

WIDTH, HEIGHT = 760.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 76.0, 20.0, 36.0, 52.0
_DASHES = ("", "6 3", "2 3")
_MOST_MARKS = 40
"""A curve with more points is drawn without a mark at each."""
_ROW, _GAP = 18.0, 10.0
"""Height of a bar, and the space between rows of bars, in pixels."""
_MOST_ROWS = 60
_LETTER, _MOST_LETTERS = 6.6, 40
_TICKS = 6
_LARGEST = 1e300
"""Larger values, infinity and NaN have no place: a span of two of them, or a stack of bars, may be infinite."""
_LEAST_SPAN = 1e-300
"""Steps between ticks of a smaller span would be 0."""
# XML 1.0 has no place for these characters, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Axis:
    """Maps values to pixels; `ticks` are labels by value."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool

    def at(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pixels of values."""
        low, high, places = self.low, self.high, values
        if self.is_log:
            low, high, places = math.log10(low), math.log10(high), np.log10(values)
        pixels: NDArray[np.float64] = self.start + (places - low) / (high - low) * (self.end - self.start)
        return pixels

    @property
    def ticks(self) -> Mapping[float, str]:
        """Return labels by value: the 1, 2 and 5 of each decade, or round steps."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = next((each for each in ((1, 2, 5), (1,)) if len(each) * len(powers) <= 2 * _TICKS), (1,))
            values = [step * 10.0**power for power in powers for step in steps]
            values = values[:: -(-len(values) // (2 * _TICKS))]
        else:
            step = _round_step((self.high - self.low) / _TICKS)
            first = math.ceil(self.low / step - 1e-9)
            values = [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return {value: _label(value) for value in values if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)}


def _axis_of(values: NDArray[np.float64], start: float, end: float, is_log: bool, from_zero: bool) -> _Axis:
    if is_log:
        low, high = float(values.min()), float(values.max())
        return _Axis(low / 1.05, high * 1.05, start, end, True)
    low, high = float(values.min()), float(values.max())
    if from_zero:
        low, high = min(low, 0.0), max(high * 1.04, 0.0)
    if high - low < _LEAST_SPAN:
        high = low + (abs(low) if abs(low) > _LEAST_SPAN else 1.0)
    return _Axis(low, high, start, end, False)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(each for each in (1, 2, 5, 10) if each * power >= step * (1 - 1e-9))


def _label(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * size or (abs(value) >= size and letter != "k"):
            return f"{value / size:.6g}{letter}"
    return f"{value:.6g}"


def svg_of(plot: Plot) -> str:
    """Return the SVG document of a plot; values that a scale has no place for are left out."""
    drawn = _bars(plot) if plot.shape in ("bars", "stacked bars") else _lines(plot)
    body, height = drawn
    title = _text(WIDTH / 2, 20, plot.title, weight="bold")
    has_dashes = plot.shape not in ("bars", "stacked bars")
    legend = [
        LegendEntry(_colour(number), 4.0, _clean(each.name), _dash(number) if has_dashes else "")
        for number, each in enumerate(plot.curves)
    ]
    return document(WIDTH, height, [title, *body], "white", label=_clean(plot.title), legend=legend)


def _lines(plot: Plot) -> tuple[list[str], float]:
    is_log_x, is_log_y = plot.x_scale == "log", plot.y_scale == "log"
    curves = [_drawable(each, is_log_x, is_log_y) for each in plot.curves]
    xs, ys = (np.concatenate([np.zeros(0), *(each[side] for each in curves)]) for side in (0, 1))
    if not len(xs):
        is_log = is_log_x or is_log_y
        return _nothing("no value above 0, which a logarithmic scale needs" if is_log else "no values")
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    across = _axis_of(xs, _LEFT, right, is_log_x, False)
    up = _axis_of(ys, bottom, _TOP, is_log_y, True)
    body = [*_grid_of(across, bottom), *_titles(plot, HEIGHT)]
    for value, label in up.ticks.items():
        y = float(up.at(np.array([value]))[0])
        body += [
            _grid_line(f"M{_LEFT:g} {y:.1f}H{right:g}"),
            _text(_LEFT - 6, y + 4, label, "end"),
        ]
    for number, (x_values, y_values) in enumerate(curves):
        body += _line(plot, number, across.at(x_values), up.at(y_values))
    return body, HEIGHT


def _nothing(why: str) -> tuple[list[str], float]:
    return [_text(WIDTH / 2, HEIGHT / 2, why)], HEIGHT


def _drawable(curve: PlotCurve, is_log_x: bool, is_log_y: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.asarray(curve.x, np.float64), curve.y
    kept = (abs(x) <= _LARGEST) & (abs(y) <= _LARGEST)
    if is_log_x:
        kept &= x > 0
    if is_log_y:
        kept &= y > 0
    return x[kept], y[kept]


def _line(plot: Plot, number: int, x: NDArray[np.float64], y: NDArray[np.float64]) -> Iterator[str]:
    """Yield a curve's polyline, and a mark at each point if there are few."""
    if not len(x):
        return
    colour, dash = _colour(number), _dash(number)
    places = list(zip(x.tolist(), y.tolist(), strict=True))
    joined = places[:1]
    for (x0, y0), (x1, y1) in pairwise(places):
        if plot.shape == "step before":
            joined.append((x1, y0))
        elif plot.shape == "step after":
            joined.append((x0, y1))
        joined.append((x1, y1))
    points = " ".join(f"{px:.2f},{py:.2f}" for px, py in joined)
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{dashed}/>'
    if plot.shape == "line" and len(places) <= _MOST_MARKS:
        yield from (f'<circle cx="{px:.2f}" cy="{py:.2f}" r="3" fill="{colour}"/>' for px, py in places)


def _bars(plot: Plot) -> tuple[list[str], float]:
    """Return bars to the right, a row for each category, and the height."""
    is_stacked = plot.shape == "stacked bars"
    rows = list(dict.fromkeys(str(row) for curve in plot.curves for row in curve.x))
    if not rows:
        return _nothing("no values")
    shown = rows[:_MOST_ROWS]
    lanes = 1 if is_stacked else len(plot.curves)
    pitch = lanes * _ROW + _GAP
    left = 20 + _LETTER * min(_MOST_LETTERS, max(map(len, shown)))
    bottom = _TOP + pitch * len(shown)
    height = bottom + _BOTTOM
    ends = dict.fromkeys(rows, 0.0)
    bars = []
    for number, curve in enumerate(plot.curves):
        for row, value in zip(map(str, curve.x), curve.y.tolist(), strict=True):
            if row in shown and abs(value) <= _LARGEST:
                begin = ends[row] if is_stacked else 0.0
                ends[row] = begin + value if is_stacked else max(ends[row], value)
                bars.append((shown.index(row), 0 if is_stacked else number, number, begin, value))
    across = _axis_of(np.array([0.0, *ends.values()]), left, WIDTH - _RIGHT, False, True)
    body = [*_grid_of(across, bottom), _text((left + WIDTH - _RIGHT) / 2, height - 10, plot.y_title)]
    for place, row in enumerate(shown):
        name = row if len(row) <= _MOST_LETTERS else row[: _MOST_LETTERS - 1] + "…"
        body.append(_text(left - 6, _TOP + pitch * place + (pitch - _GAP) / 2 + _GAP / 2 + 4, name, "end"))
    for place, lane, number, begin, value in bars:
        start, end = across.at(np.array([begin, begin + value])).tolist()
        y = _TOP + pitch * place + _GAP / 2 + lane * _ROW
        body.append(
            f'<rect x="{min(start, end):.2f}" y="{y:.2f}" width="{abs(end - start):.2f}" height="{_ROW - 2:g}" '
            f"fill={quoted(_colour(number))}/>"
        )
    if len(rows) > len(shown):
        body.append(_text(WIDTH - _RIGHT, height - 10, f"the first {len(shown)} of {len(rows)} rows", "end"))
    return body, height


def _grid_of(across: _Axis, bottom: float) -> Iterator[str]:
    for value, label in across.ticks.items():
        x = float(across.at(np.array([value]))[0])
        yield _grid_line(f"M{x:.1f} {_TOP:g}V{bottom:g}")
        yield _text(x, bottom + 18, label)


def _grid_line(path: str) -> str:
    return f'<path d="{path}" stroke="#888" stroke-opacity="0.35"/>'


def _titles(plot: Plot, height: float) -> Sequence[str]:
    middle = (_TOP + height - _BOTTOM) / 2
    return (
        _text((_LEFT + WIDTH - _RIGHT) / 2, height - 10, plot.x_title),
        f'<g transform="translate(16 {middle:g}) rotate(-90)">{_text(0, 0, plot.y_title)}</g>',
    )


def _colour(number: int) -> str:
    return PLANE_COLOURS[number % len(PLANE_COLOURS)]


def _dash(number: int) -> str:
    """Return the dashes of a curve, which tell it from earlier ones of its colour; "" for a solid line."""
    return _DASHES[number // len(PLANE_COLOURS) % len(_DASHES)]


def _clean(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _text(x: float, y: float, text: str, anchor: str = "middle", weight: str = "normal") -> str:
    # The class has a light colour on a dark ground (`document`).
    return (
        f'<text class="drawn-note" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escaped(_clean(text))}</text>"
    )
