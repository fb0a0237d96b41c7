"""Chart of a calibration: measured and modelled times by size, before and after the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.calibration.fit import Calibration, Row
from weft.calibration.runs import ComparedTable
from weft.quantities.readable import format_size, format_time
from weft.topologies.draw_shapes import PLANE_COLOURS, document, escaped

_WIDTH, _HEIGHT = 480.0, 320.0
_LEFT, _TOP, _BOTTOM, _RIGHT = 84.0, 44.0, 96.0, 40.0
# All show on a dark ground, too.
_MEASURED, _BEFORE, _AFTER, _LINES = PLANE_COLOURS[1], PLANE_COLOURS[7], PLANE_COLOURS[0], "#808080"
_MOST_LABELS = 8


def calibration_svg(found: Calibration) -> str:
    """Return the chart as SVG text: a panel for each log, one below the other, with logarithmic axes."""
    body: list[str] = []
    panel_height = _TOP + _HEIGHT + _BOTTOM
    for number, (compared, rows) in enumerate(found.tables):
        body += _panel(compared, rows, number * panel_height + _TOP)
    return document(
        _LEFT + _WIDTH + _RIGHT, panel_height * len(found.tables), body, "white", label="measured and modelled times"
    )


def _panel(compared: ComparedTable, rows: Sequence[Row], top: float) -> list[str]:
    xs = _Axis([row.size_bytes for row in rows], 2.0, _LEFT, _LEFT + _WIDTH)
    times = [time for row in rows for time in (row.measured_ps, row.before_ps, row.after_ps)]
    ys = _Axis(times, 10.0, top + _HEIGHT, top)
    bottom = top + _HEIGHT
    table = compared.table
    title = f"{table.collective} by {compared.algorithm}, {table.ranks} ranks"
    parts = [_text(f"{_LEFT + _WIDTH / 2:g}", f"{top - 16:g}", title, ' font-size="14" font-weight="bold"')]
    for tick in ys.ticks:
        y = ys.at(tick)
        ends = f'x1="{_LEFT:g}" y1="{y:.1f}" x2="{_LEFT + _WIDTH:g}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="{_LINES}" stroke-opacity="0.3"/>')
        parts.append(_text(f"{_LEFT - 6:g}", f"{y + 4:.1f}", format_time(tick), ' text-anchor="end"'))
    for tick in xs.ticks:
        x = xs.at(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{bottom:g}" x2="{x:.1f}" y2="{bottom + 4:g}" stroke="{_LINES}"/>')
        parts.append(_text(f"{x:.1f}", f"{bottom + 18:g}", format_size(tick)))
    parts.append(f'<path d="M{_LEFT:g} {top:g}V{bottom:g}H{_LEFT + _WIDTH:g}" fill="none" stroke="{_LINES}"/>')
    for colour, dashes, curve in (
        (_BEFORE, ' stroke-dasharray="5 4"', [(row.size_bytes, row.before_ps) for row in rows]),
        (_AFTER, "", [(row.size_bytes, row.after_ps) for row in rows]),
    ):
        path = "L".join(f"{xs.at(size):.1f} {ys.at(time):.1f}" for size, time in curve)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
    for row in rows:
        tooltip = (
            f"{format_size(row.size_bytes)}: measured {format_time(row.measured_ps)}, model "
            f"{format_time(row.after_ps)} ({100 * row.residual:+.1f} %){', held out' if row.held_out else ''}"
        )
        mark = _dot(xs.at(row.size_bytes), ys.at(row.measured_ps), row.held_out)
        parts.append(f"<g><title>{escaped(tooltip)}</title>{mark}</g>")
    return parts + _legend(bottom + 44)


def _legend(y: float) -> list[str]:
    entries = [
        (_dot(0, 0, False), "measured"),
        (_dot(0, 0, True), "held out"),
        (f'<path d="M-8 0H8" stroke="{_BEFORE}" stroke-width="1.8" stroke-dasharray="5 4"/>', "model before"),
        (f'<path d="M-8 0H8" stroke="{_AFTER}" stroke-width="1.8"/>', "model after"),
    ]
    return [
        f'<g transform="translate({_LEFT + 8 + place * 122:g} {y:g})">{mark}'
        + _text("14", "4", text, ' text-anchor="start"')
        + "</g>"
        for place, (mark, text) in enumerate(entries)
    ]


def _text(x: str, y: str, text: str, style: str = "") -> str:
    return f'<text class="drawn-note" x="{x}" y="{y}"{style}>{escaped(text)}</text>'


def _dot(x: float, y: float, held_out: bool) -> str:
    fill = "none" if held_out else _MEASURED
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke-width="1.5" stroke="{_MEASURED}" fill="{fill}"/>'


class _Axis:
    """A logarithmic axis from `begin` to `end` (pixels) over all values, with ticks at powers of `base`."""

    def __init__(self, values: Sequence[float], base: float, begin: float, end: float) -> None:
        low = math.floor(math.log(max(1.0, min(values)), base) + 1e-9)
        high = max(math.ceil(math.log(max(1.0, max(values)), base) - 1e-9), low + 1)
        step = math.ceil((high - low + 1) / _MOST_LABELS)
        self.ticks = [base**power for power in range(low, high + 1, step)]
        self._low, self._per_unit, self._base, self._begin = low, (end - begin) / (high - low), base, begin

    def at(self, value: float) -> float:
        return self._begin + (math.log(max(1.0, value), self._base) - self._low) * self._per_unit
