"""Drawing of a fabric without tiers: the kind of topology places the switches, and hosts are drawn next to theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.topologies.draw_curves import Curve, bend_of, extent
from weft.topologies.draw_layout import Box
from weft.topologies.draw_shapes import LegendEntry, LinkStyle, LinkStyles, document, frame, node, plane_title
from weft.topologies.fabric import FabricLink, FabricSpec
from weft.topologies.places import Places

_UNIT, _SMALLEST_UNIT = 96.0, 22.0
_COMFORTABLE_WIDTH = 2400.0
_MARGIN, _PLANE_GAP, _TITLE = 28.0, 110.0, 30.0
_MOST_COMPARED = 2_000_000
"""Beyond this product of links and switches, links are straight."""
_MOST_TRIED = 20_000
"""Beyond this product of boxes and links, hosts are always drawn at the first place."""
_ASIDE = 0.12
"""Distance between parallel links."""
_HOST_PLACES = ((-0.3, 1.45), (0.3, 1.45), (-0.3, -1.45), (0.3, -1.45))
"""Offsets for a switch's hosts, in its widths and heights; the middle is left to links within a column."""
_FRAME = 0.22
"""Margin around the switches of a group, as a fraction of the unit."""


@dataclass(frozen=True)
class _Line:
    """A link between two switches, or a switch's host links in the style of the most prominent one."""

    link: FabricLink
    style: LinkStyle
    curve: Curve
    styles: Sequence[LinkStyle] = ()
    """Styles of all the links, if the line represents several."""

    def svg(self, unit: float) -> str:
        return self.curve.svg(self.style, f"{self.link} {self.style.note}".rstrip(), unit, self.styles)


def placed_svg(
    fabric: FabricSpec,
    places: Sequence[Places],
    style_of: LinkStyles,
    background: str | None,
    legend: Sequence[LegendEntry] = (),
) -> str:
    """Return the drawing as SVG text, planes side by side; `places` has the switches' places for each plane."""
    boxes, unit, middles = placed_boxes(places)
    styled = sorted(((link, style_of(link)) for link in fabric.links), key=lambda each: (each[1].failed, each[1].width))
    between = _between(fabric, styled, boxes, unit)
    hosts = _hosts(fabric, boxes, [line.curve for line in between])
    # The last of a switch's host links, which stands out most, represents all of them.
    to_hosts: dict[str, list[tuple[FabricLink, LinkStyle]]] = {}
    for link, style in styled:
        if link.a.node not in boxes:
            to_hosts.setdefault(link.b.node, []).append((link, style))
    lines = [
        *(
            _Line(*links[-1], Curve.between(hosts[switch][1], boxes[switch]), [each for _, each in links])
            for switch, links in to_hosts.items()
        ),
        *between,
    ]
    frames = _frames(fabric, boxes, hosts, unit)
    body = [
        *(frame(box, title) for title, box in frames),
        *(line.svg(unit) for line in lines),
        *(node(_label(names), "host", box, _label(names)) for names, box in hosts.values()),
    ]
    for switch in fabric.switches:
        title = f"{switch.name} {switch.coordinates} device {switch.device_id} {switch.address}"
        body.append(node(switch.name, switch.role, boxes[switch.name], title))
    drawn = [*boxes.values(), *(box for _, box in hosts.values()), *(box for _, box in frames)]
    return on_a_page(fabric, body, drawn, [line.curve for line in lines], middles, background, legend=legend)


def placed_boxes(planes: Sequence[Places]) -> tuple[dict[str, Box], float, list[float]]:
    """Return boxes by name, the unit of the places in pixels, and the middle of each plane."""
    planes = [_from_zero(places) for places in planes]
    widths = [max(x for x, _ in places.values()) for places in planes]
    free = _COMFORTABLE_WIDTH - 2 * _MARGIN - (len(planes) - 1) * _PLANE_GAP
    unit = max(_SMALLEST_UNIT, min(_UNIT, free / max(1.0, sum(widths))))
    boxes: dict[str, Box] = {}
    middles = []
    left = 0.0
    for places, width in zip(planes, widths, strict=True):
        boxes |= {name: Box(left + x * unit, y * unit, 0.68 * unit, 0.26 * unit) for name, (x, y) in places.items()}
        middles.append(left + width * unit / 2)
        left += width * unit + _PLANE_GAP
    return boxes, unit, middles


def on_a_page(
    fabric: FabricSpec,
    body: Sequence[str],
    boxes: Sequence[Box],
    curves: Sequence[Curve],
    middles: Sequence[float],
    background: str | None,
    captions: int = 0,
    legend: Sequence[LegendEntry] = (),
) -> str:
    """Return the whole drawing, fitted to its content, with room above for plane titles and `captions` lines."""
    left, right, top, bottom = extent(boxes, curves)
    above = _TITLE + 16 * captions
    titles = [plane_title(plane, fabric.plane_name(plane), x, top - above) for plane, x in enumerate(middles)]
    size = (right - left + 2 * _MARGIN, bottom - top + above + 2 * _MARGIN)
    corner = (left - _MARGIN, top - above - _MARGIN)
    return document(*size, [*body, *titles], background, corner, legend=legend)


def _from_zero(places: Places) -> Places:
    left, top = (min(place[axis] for place in places.values()) for axis in (0, 1))
    return {name: (x - left, y - top) for name, (x, y) in places.items()}


def _between(
    fabric: FabricSpec,
    styled: Sequence[tuple[FabricLink, LinkStyle]],
    boxes: Mapping[str, Box],
    unit: float,
) -> list[_Line]:
    """Return the links between switches, the most prominent last."""
    of_plane = [[boxes[switch.name] for switch in fabric.switches_of_plane(plane)] for plane in range(fabric.planes)]
    bent = len(fabric.links) * len(of_plane[0]) < _MOST_COMPARED
    lines = []
    for link, style in styled:
        if link.a.node not in boxes:
            continue
        start, end = boxes[link.a.node], boxes[link.b.node]
        parallel = fabric.links_between(link.a.node, link.b.node)
        aside = (parallel.index(link) - (len(parallel) - 1) / 2) * _ASIDE * unit
        bend = bend_of(start, end, of_plane[fabric.switch(link.a.node).plane], unit) if bent else 0.0
        lines.append(_Line(link, style, Curve.between(start, end, bend + aside)))
    return lines


def host_box(box: Box, others: Sequence[Box], curves: Sequence[Curve]) -> Box:
    """Return the box of a switch's hosts: the first candidate place with the fewest obstacles."""
    candidates = [
        Box(box.x + x * box.width, box.y + y * box.height, 0.54 * box.width, 0.7 * box.height) for x, y in _HOST_PLACES
    ]
    if len(others) * len(curves) > _MOST_TRIED:
        return candidates[0]

    def in_the_way(candidate: Box) -> int:
        return sum(curve.passes(candidate) for curve in curves) + 4 * sum(
            abs(candidate.x - each.x) < (candidate.width + each.width) / 2
            and abs(candidate.y - each.y) < (candidate.height + each.height) / 2
            for each in others
        )

    return min(candidates, key=in_the_way)


def _hosts(fabric: FabricSpec, boxes: Mapping[str, Box], curves: Sequence[Curve]) -> dict[str, tuple[list[str], Box]]:
    """Return, for each switch with hosts, the hosts and the box that they share."""
    names: dict[str, list[str]] = {}
    for host in fabric.hosts:
        for switch in dict.fromkeys(nic.switch for nic in host.nics):
            names.setdefault(switch, []).append(host.name)
    others = list(boxes.values())
    return {switch: (hosts, host_box(boxes[switch], others, curves)) for switch, hosts in names.items()}


def _frames(
    fabric: FabricSpec,
    boxes: Mapping[str, Box],
    hosts: Mapping[str, tuple[list[str], Box]],
    unit: float,
) -> list[tuple[str, Box]]:
    """Return a frame around each group of several switches, with its name."""
    groups: dict[tuple[int, int], list[Box]] = {}
    for switch in fabric.switches:
        if switch.group is not None:
            of_group = groups.setdefault((switch.plane, switch.group), [])
            of_group.append(boxes[switch.name])
            if switch.name in hosts:
                of_group.append(hosts[switch.name][1])
    if len(groups) <= fabric.planes:
        return []
    found = []
    for (_, group), members in groups.items():
        left, right, top, bottom = extent(members, [])
        pad = _FRAME * unit
        box = Box((left + right) / 2, (top + bottom) / 2, right - left + 2 * pad, bottom - top + 2 * pad)
        found.append((f"group {group}", box))
    return found


def _label(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} – {names[-1]}"
