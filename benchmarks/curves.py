"""Curves as an SVG picture: panels side by side, each with an axis from 0, its curves and their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 34, 46
COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b5ea7")
DASHES = ("", "7 3", "2 3", "9 3 2 3")
TICKS = 5


@dataclass(frozen=True)
class Panel:
    """Curves by name, each a list of points; values beyond the ends of the axes are cut off."""

    title: str
    x_label: str
    y_label: str
    x_most: float
    y_most: float
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
    for tick in range(TICKS + 1):
        x, y = _place(panel, panel.x_most * tick / TICKS, panel.y_most * tick / TICKS)
        parts += [
            f'<path d="M{x:.1f} {TOP}V{bottom}M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>',
            _text(x, bottom + 16, f"{panel.x_most * tick / TICKS:g}"),
            _text(LEFT - 6, y + 4, f"{panel.y_most * tick / TICKS:g}", anchor="end"),
        ]
    for index, (name, points) in enumerate(panel.curves.items()):
        style = f'stroke="{COLOURS[index]}" stroke-width="2" stroke-dasharray="{DASHES[index]}"'
        places = [_place(panel, *point) for point in points]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="M{line}" fill="none" {style} clip-path="url(#panel{number})"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[index]}"/>'
            for x, y in places
            if y >= TOP
        ]
        y = TOP + 14 + 17 * index
        parts += [f'<path d="M{LEFT + 10} {y}h28" {style}/>', _text(LEFT + 44, y + 4, name, anchor="start")]
    return parts


def _place(panel: Panel, x: float, y: float) -> tuple[float, float]:
    return (
        LEFT + (WIDTH - RIGHT - LEFT) * x / panel.x_most,
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / panel.y_most,
    )


def _text(x: float, y: float, text: str, *, anchor: str = "middle", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )
