"""SVG shapes for drawings of fabrics."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from weft.topologies.draw_layout import Box
from weft.topologies.fabric import FabricLink

_FILL = {"core": "#e6d9f0", "spine": "#cfe0f5", "leaf": "#d9ecd0", "host": "#f3e6c8"}
_OTHER_FILL = "#d5e8e4"
PLANE_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c49000", "#56b4e9", "#aa4499", "#808080")
"""Colours of planes and rails: those of Okabe and Ito, which colour-blind readers tell apart, the yellow darker so that
it shows on white; a purple of Tol's; and a grey. All show on a dark ground, too."""
CIRCUIT_COLOUR = "#d9930d"
"""Colour of links through optical circuit switches."""
_SCHEMES = "<style>@media (prefers-color-scheme: dark) {{ {ground}.drawn-note {{ fill: #b9c2cb }} }}</style>"
_DARK_GROUND = ".drawn-ground { fill: #14191f } "
_ARC, _HIGHEST_ARC = 0.12, 36.0
"""Height of an arc: a fraction of its width, and the maximum."""
_LEGEND_MARGIN = 24.0
_SMALLEST_LABEL = 16.0
"""Least width of a box to be labelled with its name."""
_SMALLEST_UPRIGHT_LABEL = 8.0
"""Least width of a box to be labelled with vertical text."""


@dataclass(frozen=True)
class LinkStyle:
    """How a link is drawn: a CSS colour, a width in pixels, and a note that its tooltip adds to its name.

    A `failed` link is dashed and crossed out. Elements list the `key` of their links in the attribute data-links, for
    pages that recolour links.
    """

    colour: str
    width: float = 1.5
    note: str = ""
    failed: bool = False
    key: int | None = None


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend: a sample of links and what they are. `dash` is its `stroke-dasharray`, "" if it is solid."""

    colour: str
    width: float
    text: str
    dash: str = ""


LinkStyles = Callable[[FabricLink], LinkStyle]


def escaped(text: str) -> str:
    """Return text escaped for use between tags."""
    return html.escape(text, quote=False)


def quoted(text: str) -> str:
    """Return text escaped as an attribute's value, in quotes."""
    return f'"{html.escape(text)}"'


def document(
    width: float,
    height: float,
    body: Sequence[str],
    background: str | None,
    corner: tuple[float, float] = (0.0, 0.0),
    label: str = "topology",
    legend: Sequence[LegendEntry] = (),
) -> str:
    """Return a drawing of this size with its upper left corner at `corner`; a `background` of None is transparent.

    `label` is read by screen readers. A `legend` is drawn below, which makes the drawing higher.
    """
    if legend:
        elements, more = drawn_legend(legend, corner[0] + _LEGEND_MARGIN, corner[1] + height, width - _LEGEND_MARGIN)
        body, height = [*body, *elements], height + more
    x, y = corner
    at = f'x="{x:g}" y="{y:g}" ' if corner != (0.0, 0.0) else ""
    filled = []
    if background:
        # A page has a ground, schemes and maybe a policy against styles of its own.
        filled.append(_SCHEMES.format(ground=_DARK_GROUND if background == "white" else ""))
        filled.append(f'<rect class="drawn-ground" {at}width="100%" height="100%" fill={quoted(background)}/>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="{x:g} {y:g} {width:g} {height:g}" font-family="sans-serif" font-size="12" '
            f'text-anchor="middle" role="img" aria-label={quoted(label)}>',
            *filled,
            *body,
            "</svg>\n",
        ]
    )


def drawn_legend(entries: Sequence[LegendEntry], x: float, y: float, width: float) -> tuple[list[str], float]:
    """Return a legend's elements below `y`, in lines of at most `width` pixels, and its height."""
    body, left, line = [], x, 0
    for entry in entries:
        needs = 34 + 6.4 * len(entry.text) + 18
        if left > x and left + needs > x + width:
            left, line = x, line + 1
        at = y + 8 + 18 * line
        body.append(_sample(entry, left, at - 4))
        body.append(caption(entry.text, left + 32, at, "start"))
        left += needs
    return body, 8.0 + 18 * (line + 1)


def _sample(entry: LegendEntry, left: float, middle_y: float) -> str:
    if entry.dash:
        return (
            f'<path d="M{left:.1f} {middle_y:.1f}h26" fill="none" stroke={quoted(entry.colour)} '
            f'stroke-width="{entry.width:.3g}" stroke-dasharray={quoted(entry.dash)}/>'
        )
    return (
        f'<rect x="{left:.1f}" y="{middle_y - entry.width / 2:.1f}" width="26" height="{entry.width:.3g}" '
        f"fill={quoted(entry.colour)}/>"
    )


def stroke(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the beginning of an element that joins two points: a line, or an arc above them if they share a row."""
    (x1, y1), (x2, y2) = start, end
    if y1 != y2:
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    x, y = middle(start, end)
    return f'<path fill="none" d="M{x1:.1f} {y1:.1f}Q{x:.1f} {2 * y - y1:.1f} {x2:.1f} {y2:.1f}"'


def keys(styles: Iterable[LinkStyle]) -> str:
    """Return the data-links attribute with the keys of an element's links, or an empty text."""
    found = " ".join(str(style.key) for style in styles if style.key is not None)
    return f' data-links="{found}"' if found else ""


def element_of(beginning: str) -> str:
    """Return the name of the element that `stroke` began."""
    return beginning[1:].split(maxsplit=1)[0]


def middle(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    """Return the midpoint of the line or arc that `stroke` draws."""
    (x1, y1), (x2, y2) = start, end
    rise = min(_HIGHEST_ARC, _ARC * abs(x2 - x1)) if y1 == y2 else 0.0
    return (x1 + x2) / 2, (y1 + y2) / 2 - rise


def cross(x: float, y: float, colour: str) -> str:
    """Return a cross, which tells a failed link from a busy one without colour."""
    arm = 6.0
    return (
        f'<path d="M{x - arm:.1f} {y - arm:.1f}L{x + arm:.1f} {y + arm:.1f}M{x - arm:.1f} {y + arm:.1f}'
        f'L{x + arm:.1f} {y - arm:.1f}" stroke={quoted(colour)} stroke-width="2.5"/>'
    )


def node(name: str, kind: str, box: Box, title: str, fill: str | None = None, styles: Iterable[LinkStyle] = ()) -> str:
    """Return a node's box with its name, if that fits, line by line; `title` is its tooltip.

    The box also represents links of `styles` that are not drawn.
    """
    corner = min(4.0, box.width / 6)
    fill = fill or _FILL.get(kind, _OTHER_FILL)
    left, upper = box.x - box.width / 2, box.y - box.height / 2
    rectangle = (
        f'<g{keys(styles)}><title>{escaped(title)}</title><rect x="{left:.1f}" y="{upper:.1f}" '
        f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{corner:.1f}" fill="{fill}" stroke="#444" '
        f'stroke-width="{min(1.0, box.width / 16):.2g}"/>'
    )
    lines = name.split("\n")
    height = box.height / len(lines)
    first = upper + height / 2
    texts = (label(line, replace(box, y=first + place * height, height=height)) for place, line in enumerate(lines))
    return rectangle + "".join(texts) + "</g>"


def label(name: str, box: Box) -> str:
    """Return a box's label, vertical in a narrow box, or an empty text if it does not fit."""
    if box.width >= _SMALLEST_LABEL:
        size = min(12.0, 1.6 * box.width / max(3, len(name)))
        place = f'x="{box.x:.1f}" y="{box.y + size / 3:.1f}" font-size="{size:.1f}"'
        return f'<text {place} fill="#111">{escaped(name)}</text>'
    if box.width >= _SMALLEST_UPRIGHT_LABEL and box.height >= 2 * box.width:
        size = min(0.8 * box.width, 1.6 * box.height / max(3, len(name)))
        return (
            f'<text transform="translate({box.x + size / 3:.1f} {box.y:.1f}) rotate(-90)" font-size="{size:.1f}" '
            f'fill="#111">{escaped(name)}</text>'
        )
    return ""


def plane_colour(number: int) -> str:
    """Return the colour of a plane or a rail."""
    return PLANE_COLOURS[number % len(PLANE_COLOURS)]


def plane_title(plane: int, name: str, x: float, y: float = 28.0) -> str:
    """Return a plane's name in its colour."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="14" font-weight="bold" '
        f'fill="{plane_colour(plane)}">{escaped(name)}</text>'
    )


def caption(text: str, x: float, y: float, anchor: str = "middle") -> str:
    """Return a line of small text; `anchor` says which part of it is at (x, y): start, middle or end."""
    place = f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text class="drawn-note" {place} font-size="11" fill="#555" text-anchor="{anchor}">{escaped(text)}</text>'


def frame(box: Box, title: str) -> str:
    """Return a pale frame with its title above it."""
    left, upper = box.x - box.width / 2, box.y - box.height / 2
    return (
        f'<rect x="{left:.1f}" y="{upper:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="8" '
        f'fill="#888" fill-opacity="0.1" stroke="#999" stroke-width="0.5"/>'
        + caption(title, left + 4, upper - 4, "start")
    )
