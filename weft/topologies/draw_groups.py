"""Drawing of a large fabric: neighbouring switches of a tier as one box, the links between two boxes as one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.topologies import draw_shapes as shapes
from weft.topologies.descriptions import plural_of
from weft.topologies.draw_clusters import range_of
from weft.topologies.draw_layout import Box, rows_of
from weft.topologies.draw_legend import rails_of
from weft.topologies.fabric import FabricLink, FabricSpec

_BOXES_IN_A_ROW = 16
"""Most boxes in a row, shared by the planes that are drawn side by side."""
_FEWEST_IN_A_ROW = 4
"""Boxes that each plane may have, however many planes share the row."""
_MARGIN, _TITLE, _TOP, _PLANE_GAP, _ROW = 24.0, 28.0, 64.0, 40.0, 120.0
_BOX = 84.0
_HEIGHT = 34.0
_PLANES_IN_A_ROW = 4
"""More planes are drawn in two rows, with the hosts between them."""
_MOST_NAMED = 4
"""Most failed links that a tooltip names."""
_MANY = 100
"""Beyond this many lines, they are thin."""
_NOTES = 150.0
"""Width of the column with the numbers of cables."""


_Links = list[tuple[FabricLink, shapes.LinkStyle]]


@dataclass(frozen=True)
class _Group:
    """Nodes drawn as one box."""

    names: tuple[str, ...]
    kind: str
    pods: str = ""
    """Which pods or rails they are, in words."""

    @property
    def label(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]} – {self.names[-1]}"

    @property
    def count(self) -> str:
        count = f"{len(self.names):,} {plural_of(self.kind) if len(self.names) > 1 else self.kind}"
        return f"{count}, {self.pods}" if self.pods else count

    @property
    def title(self) -> str:
        return self.label if len(self.names) == 1 else f"{len(self.names)} × {self.kind}: {self.label}"


def grouped_svg(
    fabric: FabricSpec,
    style_of: shapes.LinkStyles,
    background: str | None,
    legend: Sequence[shapes.LegendEntry] = (),
) -> str:
    """Return the drawing as SVG text; a line has the style of its most prominent link."""
    above = fabric.planes if fabric.planes <= _PLANES_IN_A_ROW else -(-fabric.planes // 2)
    most = max(_FEWEST_IN_A_ROW, _BOXES_IN_A_ROW // above)
    rows = [_rows_of_plane(fabric, plane, most) for plane in range(fabric.planes)]
    hosts = _host_groups(fabric, rows[0][-1])
    plane_width = _BOX * max(len(row) for tiers in rows for row in tiers)
    width = above * plane_width + (above - 1) * _PLANE_GAP
    middle = _TOP + len(rows[0]) * _ROW
    boxes: dict[_Group, Box] = {}
    titles = []
    for plane, tiers in enumerate(rows):
        left = _MARGIN + plane % above * (plane_width + _PLANE_GAP)
        # Planes below the hosts are drawn upside down.
        side = -1 if plane < above else 1
        name, title_y = fabric.plane_name(plane), middle + side * (middle - _TITLE) + 4
        titles.append(shapes.plane_title(plane, name, left + plane_width / 2, title_y))
        for depth, groups in enumerate(tiers):
            boxes |= _placed(groups, left, plane_width, middle + side * (len(tiers) - depth) * _ROW)
    boxes |= _placed(hosts, _MARGIN, width, middle)
    height = 2 * middle if above < fabric.planes else middle + _HEIGHT + _MARGIN
    group_of = {name: group for group in boxes for name in group.names}
    bundles = _bundles(fabric, style_of, group_of)
    body = [_bundle(links, boxes, group_of, len(bundles) > _MANY) for links in bundles]
    body += [
        shapes.node(
            f"{group.count}\n{group.label}" if len(group.names) > 1 else group.label,
            group.kind,
            box,
            group.title,
        )
        for group, box in boxes.items()
    ]
    body += _notes(bundles, boxes, group_of, _MARGIN + width)
    return shapes.document(width + 2 * _MARGIN + _NOTES, height, [*body, *titles], background, legend=legend)


def _notes(
    bundles: Sequence[_Links], boxes: Mapping[_Group, Box], group_of: Mapping[str, _Group], x: float
) -> list[str]:
    """Return captions, to the right of the lines, for the cables between two rows."""
    between: dict[tuple[float, float], list[int]] = {}
    for links in bundles:
        a, b = (boxes[group_of[end.node]].y for end in (links[0][0].a, links[0][0].b))
        if a != b:
            between.setdefault((min(a, b), max(a, b)), []).append(len(links))
    notes = []
    for (upper, lower), counts in between.items():
        for text, y in (
            (f"{sum(counts):,} cables,", (upper + lower) / 2 - 4),
            (f"{range_of(counts)} a line", (upper + lower) / 2 + 11),
        ):
            notes.append(shapes.caption(text, x + 10, y, "start"))
    return notes


def _rows_of_plane(fabric: FabricSpec, plane: int, most: int) -> list[list[_Group]]:
    return [_grouped(fabric, names, most) for names in rows_of(fabric, plane)]


def _grouped(fabric: FabricSpec, names: Sequence[str], most: int) -> list[_Group]:
    """Divide a row into at most `most` equal boxes: whole groups (pods) or equal parts of them, if possible."""
    kind = fabric.switch(names[0]).role
    sizes = [size for size in range(-(-len(names) // most), len(names) + 1) if len(names) % size == 0]
    of_a_group = Counter(fabric.switch(name).group for name in names).most_common(1)[0][1]
    size = next((size for size in sizes if size % of_a_group == 0 or of_a_group % size == 0), sizes[0])
    parts = [tuple(names[first : first + size]) for first in range(0, len(names), size)]
    return [_Group(part, kind, _pods(fabric, part)) for part in parts]


def _pods(fabric: FabricSpec, names: Sequence[str]) -> str:
    groups = [group for name in names if (group := fabric.switch(name).group) is not None]
    if not groups:
        return ""
    first, last = min(groups), max(groups)
    what = "rail" if rails_of(fabric) else "pod"
    return f"{what} {first}" if first == last else f"{what}s {first}–{last}"


def _host_groups(fabric: FabricSpec, leaves: Sequence[_Group]) -> list[_Group]:
    """Return hosts by the group of leaves they are attached to in the first plane; other planes are the same."""
    attached: dict[str, list[str]] = {}
    for host in fabric.hosts:
        attached.setdefault(host.nics[0].switch, []).append(host.name)
    return [_Group(tuple(name for leaf in group.names for name in attached.get(leaf, ())), "host") for group in leaves]


def _placed(groups: Sequence[_Group], left: float, width: float, y: float) -> dict[_Group, Box]:
    each = width / len(groups)
    box_width = min(2.5 * _BOX, each) * 0.86
    return {group: Box(left + each * (place + 0.5), y, box_width, _HEIGHT) for place, group in enumerate(groups)}


def _bundles(fabric: FabricSpec, style_of: shapes.LinkStyles, group_of: Mapping[str, _Group]) -> list[_Links]:
    """Return links with their styles, bundled by the groups they join; the most prominent comes last."""
    found: dict[tuple[_Group, _Group], _Links] = {}
    for link in fabric.links:
        key = group_of[link.a.node], group_of[link.b.node]
        found.setdefault(key, []).append((link, style_of(link)))
    for links in found.values():
        links.sort(key=lambda each: (each[1].failed, each[1].width))
    return sorted(found.values(), key=lambda links: (links[-1][1].failed, links[-1][1].width))


def _bundle(links: _Links, boxes: Mapping[_Group, Box], group_of: Mapping[str, _Group], thin: bool) -> str:
    first, style = links[-1]
    lower, upper = group_of[first.a.node], group_of[first.b.node]
    a, b = boxes[lower], boxes[upper]
    edge = a.height / 2 if a.y >= b.y else -a.height / 2
    start, end = (a.x, a.y - edge), (b.x, b.y + (edge if a.y != b.y else -edge))
    if start == end:
        return ""  # within the group
    failed = [str(link) for link, each in links if each.failed]
    title = f"{len(links)} links, {lower.label} to {upper.label}; most: {first} {style.note}".rstrip()
    if failed:
        more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
        title += f"; failed: {', '.join(failed[:_MOST_NAMED])}{more}"
    begun = shapes.stroke(start, end) + shapes.keys(each for _, each in links)
    width = style.width / 2 if thin else style.width
    line = (
        f"{begun} stroke={shapes.quoted(style.colour)} "
        f'stroke-width="{width:.3g}"{" stroke-dasharray=" + shapes.quoted("6 4") if failed else ""}>'
        f"<title>{shapes.escaped(title)}</title></{shapes.element_of(begun)}>"
    )
    return line + (shapes.cross(*shapes.middle(start, end), style.colour) if failed else "")
