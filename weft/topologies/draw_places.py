"""Drawing of a fabric without tiers: its switches where the kind of topology puts them, each with its hosts below."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from weft.topologies.draw_layout import Box
from weft.topologies.draw_shapes import (
    LinkStyle,
    LinkStyles,
    cross,
    document,
    escaped,
    node,
    plane_title,
    quoted,
)
from weft.topologies.fabric import FabricLink, FabricSpec
from weft.topologies.places import Places

_UNIT, _SMALLEST_UNIT = 96.0, 22.0
_COMFORTABLE_WIDTH = 2400.0
_MARGIN, _TOP, _PLANE_GAP = 84.0, 124.0, 110.0
_BEND, _MOST_BEND = 0.16, 0.75
"""Of a link that would pass through another switch: of its length, and at most of the unit."""
_MOST_COMPARED = 2_000_000
"""Links times switches; beyond that, links are straight."""
_ASIDE = 0.12
"""Between parallel links."""


def placed_svg(
    fabric: FabricSpec,
    places_of: Callable[[FabricSpec, int], Places],
    style_of: LinkStyles,
    background: str | None,
) -> str:
    """Return the drawing as SVG text, planes side by side."""
    planes = [_from_zero(places_of(fabric, plane)) for plane in range(fabric.planes)]
    widths = [max(x for x, _ in places.values()) for places in planes]
    free = _COMFORTABLE_WIDTH - 2 * _MARGIN - (fabric.planes - 1) * _PLANE_GAP
    unit = max(_SMALLEST_UNIT, min(_UNIT, free / max(1.0, sum(widths))))
    size = (0.68 * unit, 0.26 * unit)
    boxes: dict[str, Box] = {}
    body: list[str] = []
    left = _MARGIN
    for plane, (places, width) in enumerate(zip(planes, widths, strict=True)):
        boxes |= {name: Box(left + x * unit, _TOP + y * unit, *size) for name, (x, y) in places.items()}
        body.append(plane_title(plane, left + width * unit / 2))
        left += width * unit + _PLANE_GAP
    bottom = max(box.y for box in boxes.values())
    hosts = _hosts(fabric, boxes)
    shapes = [
        *_links(fabric, style_of, boxes, hosts, unit),
        *(node(_label(names), "host", box, _label(names)) for names, box in hosts.values()),
    ]
    for switch in fabric.switches:
        title = f"{switch.name} {switch.coordinates} device {switch.device_id} {switch.address}"
        shapes.append(node(switch.name, switch.role, boxes[switch.name], title))
    return document(left - _PLANE_GAP + _MARGIN, bottom + 0.6 * unit + _MARGIN, [*shapes, *body], background)


def _from_zero(places: Places) -> Places:
    left, top = (min(place[axis] for place in places.values()) for axis in (0, 1))
    return {name: (x - left, y - top) for name, (x, y) in places.items()}


def _hosts(fabric: FabricSpec, boxes: Mapping[str, Box]) -> dict[str, tuple[list[str], Box]]:
    """Return the hosts of each switch that has some, and the box that they share below it."""
    names: dict[str, list[str]] = {}
    for host in fabric.hosts:
        for switch in dict.fromkeys(nic.switch for nic in host.nics):
            names.setdefault(switch, []).append(host.name)
    return {
        switch: (
            hosts,
            # Beside the middle, where links to the switch below pass.
            Box(box.x - 0.3 * box.width, box.y + 1.45 * box.height, 0.54 * box.width, 0.7 * box.height),
        )
        for switch, hosts in names.items()
        for box in (boxes[switch],)
    }


def _label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} – {names[-1]}"


def _links(
    fabric: FabricSpec,
    style_of: LinkStyles,
    boxes: Mapping[str, Box],
    hosts: Mapping[str, tuple[list[str], Box]],
    unit: float,
) -> list[str]:
    """Return the links, what stands out last; the links of a switch's hosts as one, in the style of the busiest."""
    styled = sorted(
        ((link, style_of(link)) for link in fabric.links), key=lambda each: (each[1].failed, each[1].width)
    )
    of_plane = [
        [boxes[switch.name] for switch in fabric.switches_of_plane(plane)] for plane in range(fabric.planes)
    ]
    bent = len(fabric.links) * len(of_plane[0]) < _MOST_COMPARED
    drawn = []
    to_hosts: dict[str, tuple[FabricLink, LinkStyle]] = {}
    for link, style in styled:
        if link.a.node not in boxes:
            to_hosts[link.b.node] = (link, style)
            continue
        start, end = boxes[link.a.node], boxes[link.b.node]
        between = fabric.links_between(link.a.node, link.b.node)
        aside = (between.index(link) - (len(between) - 1) / 2) * _ASIDE * unit
        bend = _bend(start, end, of_plane[fabric.switch(link.a.node).plane], unit) if bent else 0.0
        drawn.append(_line(link, style, start, end, bend + aside, unit))
    return [
        *(
            _line(link, style, hosts[switch][1], boxes[switch], 0.0, unit)
            for switch, (link, style) in to_hosts.items()
        ),
        *drawn,
    ]


def _bend(start: Box, end: Box, boxes: Collection[Box], unit: float) -> float:
    """Return how far a link leaves the straight line: 0 unless another switch is on it."""
    x, y = end.x - start.x, end.y - start.y
    square = x * x + y * y
    for box in boxes:
        along = ((box.x - start.x) * x + (box.y - start.y) * y) / square if square else 0.0
        beside = abs((box.x - start.x) * y - (box.y - start.y) * x)
        if 0.01 < along < 0.99 and beside * beside < (0.15 * unit) ** 2 * square:
            return min(_MOST_BEND * unit, _BEND * math.sqrt(square))
    return 0.0


def _line(link: FabricLink, style: LinkStyle, start: Box, end: Box, bend: float, unit: float) -> str:
    x, y = end.x - start.x, end.y - start.y
    length = math.hypot(x, y) or 1.0
    control_x = (start.x + end.x) / 2 + 2 * bend * y / length
    control_y = (start.y + end.y) / 2 - 2 * bend * x / length
    width = style.width * min(1.0, max(0.3, unit / 60))
    dashes = ' stroke-dasharray="6 4"' if style.failed else ""
    title = escaped(f"{link} {style.note}".rstrip())
    path = (
        f'<path fill="none" d="M{start.x:.1f} {start.y:.1f}Q{control_x:.1f} {control_y:.1f} {end.x:.1f} {end.y:.1f}" '
        f'stroke={quoted(style.colour)} stroke-width="{width:.3g}"{dashes}><title>{title}</title></path>'
    )
    if not style.failed:
        return path
    middle_x, middle_y = (start.x + end.x + 2 * control_x) / 4, (start.y + end.y + 2 * control_y) / 4
    return path + cross(middle_x, middle_y, style.colour)
