"""A bar chart as SVG: groups of bars, one colour a series, each bar with its number."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756")
_LABEL, _PLOT, _NUMBER, _BAR, _GAP, _TOP = 220, 440, 90, 16, 12, 64


@dataclass(frozen=True)
class Bar:
    """One bar: bars of a group stand together, those of a series have a colour."""

    group: str
    series: str
    value: float


def bar_chart(title: str, bars: list[Bar]) -> str:
    """Return the picture; the longest bar fills the width."""
    series = list(dict.fromkeys(bar.series for bar in bars))
    colour = dict(zip(series, COLOURS, strict=False))
    largest = max(bar.value for bar in bars)
    parts, y = [], _TOP
    for group in dict.fromkeys(bar.group for bar in bars):
        own = [bar for bar in bars if bar.group == group]
        middle = y + len(own) * _BAR / 2 + 4
        parts.append(f'<text x="{_LABEL - 10}" y="{middle:.0f}" text-anchor="end">{escape(group)}</text>')
        for bar in own:
            width = _PLOT * bar.value / largest
            parts.append(
                f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR - 3}" fill="{colour[bar.series]}"/>'
            )
            parts.append(f'<text x="{_LABEL + width + 6:.0f}" y="{y + 11}">{_number(bar.value)}</text>')
            y += _BAR
        y += _GAP
    keys = []
    for number, name in enumerate(series):
        # Five keys begin at the left edge, where there is room for them.
        x = (_LABEL if len(series) < 5 else 10) + number * 140
        keys.append(f'<rect x="{x}" y="38" width="12" height="12" fill="{colour[name]}"/>')
        keys.append(f'<text x="{x + 18}" y="49">{escape(name)}</text>')
    width = _LABEL + _PLOT + _NUMBER
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{y}" fill="white"/>',
            f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
            *keys,
            *parts,
            "</svg>\n",
        ]
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"
