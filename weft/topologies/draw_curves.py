"""Links of a drawing without rows: curves that avoid the switches between their ends."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from weft.topologies.draw_layout import Box
from weft.topologies.draw_shapes import LinkStyle, cross, escaped, keys, quoted

_BEND, _LEAST_BEND, _MOST_BEND = 0.16, 0.42, 0.75
"""How far a link bends around another switch: a fraction of its length, between two multiples of the unit."""
_SAMPLES = 12
"""Points of a curve that are checked."""


@dataclass(frozen=True)
class Curve:
    """A quadratic Bézier curve: start, control point and end."""

    start: tuple[float, float]
    control: tuple[float, float]
    end: tuple[float, float]

    @classmethod
    def between(cls, start: Box, end: Box, bend: float = 0.0) -> Curve:
        """Return the curve between two boxes' centres with its midpoint at distance `bend` from the straight line."""
        x, y = end.x - start.x, end.y - start.y
        length = math.hypot(x, y) or 1.0
        control = (
            (start.x + end.x) / 2 + 2 * bend * y / length,
            (start.y + end.y) / 2 - 2 * bend * x / length,
        )
        return cls((start.x, start.y), control, (end.x, end.y))

    def at(self, part: float) -> tuple[float, float]:
        """Return the point at a fraction of the curve, 0 to 1."""
        a, b, c = (1 - part) ** 2, 2 * part * (1 - part), part**2
        (x1, y1), (x2, y2), (x3, y3) = self.start, self.control, self.end
        return a * x1 + b * x2 + c * x3, a * y1 + b * y2 + c * y3

    def passes(self, box: Box) -> bool:
        """Return whether the curve crosses a box."""
        return any(
            abs(x - box.x) < box.width / 2 and abs(y - box.y) < box.height / 2
            for x, y in (self.at(step / _SAMPLES) for step in range(1, _SAMPLES))
        )

    def svg(self, style: LinkStyle, title: str, unit: float, styles: Sequence[LinkStyle] = ()) -> str:
        """Return the curve as an SVG element with a tooltip, crossed out if the link has failed.

        It represents the links of `styles`, or only the link of `style` if `styles` is empty.
        """
        (x1, y1), (x2, y2), (x3, y3) = self.start, self.control, self.end
        width = style.width * min(1.0, max(0.3, unit / 60))
        dashes = ' stroke-dasharray="6 4"' if style.failed else ""
        path = (
            f'<path{keys(styles or [style])} fill="none" d="M{x1:.1f} {y1:.1f}Q{x2:.1f} {y2:.1f} {x3:.1f} {y3:.1f}" '
            f'stroke={quoted(style.colour)} stroke-width="{width:.3g}"{dashes}><title>{escaped(title)}</title></path>'
        )
        return path + cross(*self.at(0.5), style.colour) if style.failed else path


def bend_of(start: Box, end: Box, boxes: Collection[Box], unit: float) -> float:
    """Return how far a link bends from the straight line: 0 unless another switch is in the way."""
    x, y = end.x - start.x, end.y - start.y
    square = x * x + y * y
    for box in boxes:
        along = ((box.x - start.x) * x + (box.y - start.y) * y) / square if square else 0.0
        beside = abs((box.x - start.x) * y - (box.y - start.y) * x)
        if 0.01 < along < 0.99 and beside * beside < (0.15 * unit) ** 2 * square:
            return min(_MOST_BEND * unit, max(_LEAST_BEND * unit, _BEND * math.sqrt(square)))
    return 0.0


def extent(boxes: Collection[Box], curves: Collection[Curve]) -> tuple[float, float, float, float]:
    """Return the least and largest x and y of a drawing."""
    middles = [curve.at(0.5) for curve in curves]
    return (
        min([box.x - box.width / 2 for box in boxes] + [x for x, _ in middles]),
        max([box.x + box.width / 2 for box in boxes] + [x for x, _ in middles]),
        min([box.y - box.height / 2 for box in boxes] + [y for _, y in middles]),
        max([box.y + box.height / 2 for box in boxes] + [y for _, y in middles]),
    )
