"""Curves as an SVG picture: panels side by side, each with its axes, its curves and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import log10

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 34, 46
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b5ea7")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
TICKS = 5
MOST_DOTS = 40
"""A curve of more points is a line alone."""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis from the first of its ticks to the last: labels by value, which is above 0."""

    ticks: Mapping[float, str]

    def share(self, value: float) -> float:
        """Return where a value is, from 0 to 1 within the axis."""
        least, most = log10(min(self.ticks)), log10(max(self.ticks))
        return (log10(value) - least) / (most - least)


@dataclass(frozen=True)
class LinearAxis:
    """An axis from 0 to `most`."""

    most: float

    @property
    def ticks(self) -> dict[float, str]:
        """Labels by value, at equal distances."""
        values = [self.most * tick / TICKS for tick in range(TICKS + 1)]
        return {value: f"{value:g}" for value in values}

    def share(self, value: float) -> float:
        """Return where a value is, from 0 to 1 within the axis."""
        return value / self.most


def powers(first: int, last: int, base: int = 10) -> LogAxis:
    """Return an axis with a tick at each power of a base, labelled with the number itself from 1 to a million."""
    exponents = range(first, last + 1)
    return LogAxis(
        {float(base) ** each: f"{base**each:,}" if 0 <= each <= 6 else _power(base, each) for each in exponents}
    )


def _power(base: int, exponent: int) -> str:
    return f"{base}{str(exponent).translate(SUPERSCRIPTS)}"


@dataclass(frozen=True)
class Panel:
    """Curves by name, each a list of points; values beyond the ends of the axes are cut off.

    An axis that is a number begins at 0 and ends there.
    """

    title: str
    x_label: str
    y_label: str
    x_axis: float | LogAxis
    y_axis: float | LogAxis
    curves: Mapping[str, Sequence[tuple[float, float]]]


def svg_of(panels: Sequence[Panel]) -> str:
    """Return the picture's text."""
    width = WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * WIDTH} 0)">', *_panel(panel, number), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, number: int) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        _text(WIDTH / 2, 18, panel.title, weight="bold"),
        _text((LEFT + right) / 2, HEIGHT - 8, panel.x_label),
        f'<g transform="translate(14 {(TOP + bottom) / 2}) rotate(-90)">{_text(0, 0, panel.y_label)}</g>',
        f'<clipPath id="panel{number}"><rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/>'
        "</clipPath>",
    ]
    for value, label in _scale(panel.x_axis).ticks.items():
        x = _x(panel, value)
        parts += [
            f'<path d="M{x:.1f} {TOP}V{bottom}" stroke="#ddd"/>',
            _text(x, bottom + 16, label),
        ]
    for value, label in _scale(panel.y_axis).ticks.items():
        y = _y(panel, value)
        parts += [
            f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>',
            _text(LEFT - 6, y + 4, label, anchor="end"),
        ]
    for index, (name, points) in enumerate(panel.curves.items()):
        style = f'stroke="{COLOURS[index]}" stroke-width="2" stroke-dasharray="{DASHES[index]}"'
        places = [(_x(panel, x), _y(panel, y)) for x, y in points]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="M{line}" fill="none" {style} clip-path="url(#panel{number})"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[index]}"/>'
            for x, y in places
            if y >= TOP and len(places) <= MOST_DOTS
        ]
        y = TOP + 14 + 17 * index
        parts += [f'<path d="M{LEFT + 10} {y}h28" {style}/>', _text(LEFT + 44, y + 4, name, anchor="start")]
    return parts


def _scale(axis: float | LogAxis) -> LinearAxis | LogAxis:
    return axis if isinstance(axis, LogAxis) else LinearAxis(axis)


def _x(panel: Panel, value: float) -> float:
    return LEFT + (WIDTH - RIGHT - LEFT) * _scale(panel.x_axis).share(value)


def _y(panel: Panel, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * _scale(panel.y_axis).share(value)


def _text(x: float, y: float, text: str, *, anchor: str = "middle", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
