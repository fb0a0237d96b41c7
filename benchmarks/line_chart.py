"""A line chart as SVG: one curve over time, with moments marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 60, 640, 260
_TICKS = 4


def line_chart(
    title: str, time_label: str, times: Sequence[float], values: Sequence[float], moments: Mapping[str, float]
) -> str:
    """Return the picture. The axis of values begins at 0."""
    first, last, largest = times[0], times[-1], max(values)

    def x(time: float) -> float:
        return _LEFT + _WIDTH * (time - first) / (last - first)

    def y(value: float) -> float:
        return _TOP + _HEIGHT * (1 - value / largest)

    parts = []
    for tick in range(_TICKS + 1):
        value = largest * tick / _TICKS
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
        )
        parts.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        time = first + (last - first) * tick / _TICKS
        parts.append(f'<text x="{x(time):.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{time:,.0f}</text>')
    points = " ".join(f"{x(time):.1f},{y(value):.1f}" for time, value in zip(times, values, strict=True))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#4c78a8" stroke-width="2"/>')
    for number, (name, time) in enumerate(moments.items()):
        parts.append(
            f'<line x1="{x(time):.1f}" x2="{x(time):.1f}" y1="{_TOP - 4}" y2="{_TOP + _HEIGHT}" '
            'stroke="#e45756" stroke-dasharray="4 3"/>'
        )
        anchor, shift = ("end", -5) if number % 2 == 0 else ("start", 5)
        parts.append(
            f'<text x="{x(time) + shift:.1f}" y="{_TOP + _HEIGHT - 8}" text-anchor="{anchor}" fill="#e45756">'
            f"{escape(name)}</text>"
        )
    width, height = _LEFT + _WIDTH + 30, _TOP + _HEIGHT + 50
    label_x = _LEFT + _WIDTH / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="10" y="24" font-size="15">{escape(title)}</text>',
            *parts,
            f'<text x="{label_x}" y="{height - 12}" text-anchor="middle">{escape(time_label)}</text>',
            "</svg>\n",
        ]
    )
