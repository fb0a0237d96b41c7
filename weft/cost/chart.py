"""Chart of the trade-off between fabrics: price and power per accelerator against bisection bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from textwrap import wrap

from weft.cost.figures import CostFigures
from weft.cost.prices import PriceTable
from weft.cost.printing import caption
from weft.quantities.readable import format_number
from weft.topologies.draw_shapes import PLANE_COLOURS, document, escaped, quoted

_WIDTH, _HEIGHT = 480.0, 320.0
_LEFT, _TOP, _GAP, _BOTTOM, _RIGHT = 72.0, 44.0, 96.0, 56.0, 40.0
_ROW = 18.0
_CHARACTERS = 150
_TICKS = 5
_RADIUS = 6.0


@dataclass(frozen=True)
class _Panel:
    """A panel with axes from 0: titles, the left edge, and the ticks."""

    title: str
    y_title: str
    left: float
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            self.left + _WIDTH * x / self.x_ticks[-1],
            _TOP + _HEIGHT * (1 - y / self.y_ticks[-1]),
        )


def trade_off_svg(costs: Sequence[CostFigures], table: PriceTable) -> str:
    """Return the chart as SVG text: two panels side by side, a legend and the assumptions."""
    body: list[str] = []
    panels: list[tuple[str, str, Callable[[CostFigures], float]]] = [
        ("price", f"{table.currency} per accelerator", lambda each: each.price_per_accelerator),
        ("power", "W per accelerator", lambda each: each.watts_per_accelerator),
    ]
    x_ticks = ticks(max(each.bisection_gbps_per_accelerator for each in costs))
    for number, (title, y_title, figure) in enumerate(panels):
        y_ticks = ticks(max(map(figure, costs)))
        panel = _Panel(title, y_title, _LEFT + number * (_WIDTH + _GAP), x_ticks, y_ticks)
        body += _axes(panel)
        for place, each in enumerate(costs):
            body.append(_point(panel, each, figure(each), place))
    width = _LEFT + 2 * _WIDTH + _GAP + _RIGHT
    top = _TOP + _HEIGHT + _BOTTOM + _ROW
    for place, each in enumerate(costs):
        body += _legend(each, place, top + place * _ROW)
    top += (len(costs) + 0.5) * _ROW
    for line in wrap(caption(table), _CHARACTERS):
        body.append(f'<text x="{_LEFT:g}" y="{top:g}" text-anchor="start" fill="#555">{escaped(line)}</text>')
        top += _ROW
    return document(width, top, body, "white", label="price and power of fabrics")


def ticks(largest: float) -> list[float]:
    """Return evenly spaced round numbers, from 0 to at least `largest`."""
    if largest <= 0:
        return [0.0, 1.0]
    magnitude = 10.0 ** floor(log10(largest / _TICKS))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10, 20) if largest <= factor * magnitude * _TICKS)
    return [step * number for number in range(max(1, ceil(largest / step - 1e-9)) + 1)]


def _axes(panel: _Panel) -> list[str]:
    x0, y0 = panel.at(0, 0)
    x1, y1 = panel.at(panel.x_ticks[-1], panel.y_ticks[-1])
    parts = []
    for tick in panel.y_ticks:
        _, y = panel.at(0, tick)
        parts.append(f'<line x1="{x0:.1f}" y1="{y:.1f}" x2="{x1:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x0 - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
    for tick in panel.x_ticks:
        x, _ = panel.at(tick, 0)
        parts.append(f'<line x1="{x:.1f}" y1="{y0:.1f}" x2="{x:.1f}" y2="{y0 + 4:.1f}" stroke="#444"/>')
        parts.append(f'<text x="{x:.1f}" y="{y0 + 18:.1f}">{_number(tick)}</text>')
    middle, upper = (x0 + x1) / 2, (y0 + y1) / 2
    parts += [
        f'<path d="M{x0:.1f} {y1:.1f}V{y0:.1f}H{x1:.1f}" fill="none" stroke="#444"/>',
        f'<text x="{middle:.1f}" y="{y1 - 16:.1f}" font-size="14" font-weight="bold">{escaped(panel.title)}</text>',
        f'<text x="{middle:.1f}" y="{y0 + 38:.1f}">bisection bandwidth (Gb/s per accelerator)</text>',
        f'<text transform="translate({x0 - 54:.1f} {upper:.1f}) rotate(-90)">{escaped(panel.y_title)}</text>',
    ]
    return parts


def _point(panel: _Panel, cost: CostFigures, value: float, place: int) -> str:
    x, y = panel.at(cost.bisection_gbps_per_accelerator, value)
    tooltip = (
        f"{cost.name}: {format_number(value)} {panel.y_title}, "
        f"{format_number(cost.bisection_gbps_per_accelerator)} Gb/s of bisection per accelerator"
    )
    return (
        f"<g><title>{escaped(tooltip)}</title>{_mark(x, y, place)}"
        f'<text x="{x:.1f}" y="{y - 10:.1f}">{place + 1}</text></g>'
    )


def _legend(cost: CostFigures, place: int, y: float) -> list[str]:
    bound = "" if cost.bisection_is_exact else "; bisection: an upper bound"
    text = (
        f"{place + 1}  {cost.name}: {cost.accelerators:,} accelerators, {cost.bill.count_of('switch'):,} switches, "
        f"{cost.bill.count_of('transceiver'):,} transceivers{bound}"
    )
    return [
        _mark(_LEFT + _RADIUS, y - 4, place),
        f'<text x="{_LEFT + 20:g}" y="{y:g}" text-anchor="start">{escaped(text)}</text>',
    ]


def _mark(x: float, y: float, place: int) -> str:
    colour = PLANE_COLOURS[place % len(PLANE_COLOURS)]
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:g}" fill={quoted(colour)} fill-opacity="0.85"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.6g}"
