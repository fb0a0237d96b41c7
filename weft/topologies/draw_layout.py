"""Layout of a drawing: as a fabric grows, boxes shrink and hosts gather in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.topologies.fabric import Endpoint, FabricLink, FabricSpec, HostSpec

if TYPE_CHECKING:
    from weft.topologies.kinds.base import TopologyKind

_MARGIN = 24.0
_TOP = 64.0
_ARCS = 36.0
"""Space above a row with links between its own nodes."""
_PLANE_GAP = 48.0
_WIDEST, _NARROWEST = 72.0, 12.0
"""Space for a node in its row."""
_COMFORTABLE_WIDTH = 1800.0
"""Width up to which nodes keep their full size."""
_ROW = 120.0
_NODE_HEIGHT = 24.0
_HOSTS_IN_A_ROW = 4
"""Up to this many hosts of a leaf are drawn side by side with their links; more form a block joined by a trunk."""
_BLOCK_PADDING = 5.0
_MOST_ASIDE = 8.0
"""Largest distance between neighbouring parallel links."""


@dataclass(frozen=True)
class Box:
    """A node's centre and size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Layout:
    """A drawing's boxes by node, and the drawing's size in pixels.

    `blocks`: frames around hosts of the same leaves, by the hosts' names. `block_of`: the block that a host is in.
    `hosts_of_ranks`: boxes of hosts with several ranks, by the ranks' names; a rank is a point on the upper edge of
    its host's box.
    """

    boxes: Mapping[str, Box]
    blocks: Mapping[tuple[str, ...], Box]
    block_of: Mapping[str, Box]
    plane_centres: Sequence[float]
    width: float
    height: float
    line_scale: float
    hosts_of_ranks: Mapping[tuple[str, ...], Box] = field(default_factory=dict)
    rank_places: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    aside: Mapping[Endpoint, float] = field(default_factory=dict)
    """Horizontal offset of parallel links from their nodes' centres, by the links' lower ends."""

    def ends(self, link: FabricLink) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return where a link begins and ends: the upper edge of the lower node and the lower edge of the upper one.

        A link within a row joins the upper edges.
        """
        upper, aside = self.boxes[link.b.node], self.aside.get(link.a, 0.0)
        end = (upper.x + aside, upper.y + upper.height / 2)
        if link.a.node in self.rank_places:
            return self.rank_places[link.a.node], end
        lower = self.block_of.get(link.a.node) or self.boxes[link.a.node]
        if lower.y == upper.y:
            end = (end[0], upper.y - upper.height / 2)
        return (lower.x + aside, lower.y - lower.height / 2), end

    @classmethod
    def of(cls, fabric: FabricSpec) -> Layout:
        """Return the layout of a fabric."""
        planes = [rows_of(fabric, plane) for plane in range(fabric.planes)]
        groups = _hosts_of_ranks(fabric) or _groups(fabric.hosts)
        largest = 2 if fabric.scale_up else max(map(len, groups))
        across = min(largest, _HOSTS_IN_A_ROW)
        columns = max(sum(max(map(len, tiers)) for tiers in planes), len(groups) * (across + (largest > across) * 0.8))
        spacing = max(_NARROWEST, min(_WIDEST, _COMFORTABLE_WIDTH / columns))
        width = columns * spacing + (fabric.planes - 1) * _PLANE_GAP
        row_height = max(_ROW, width * 0.07)
        height = _NODE_HEIGHT if spacing >= 40 else max(_NODE_HEIGHT, 2.4 * spacing)

        highest = _TOP + (_ARCS if any(_has_arcs(fabric, tiers[0]) for tiers in planes) else 0.0)
        boxes: dict[str, Box] = {}
        centres = []
        plane_width = (width - (fabric.planes - 1) * _PLANE_GAP) / fabric.planes
        for plane, tiers in enumerate(planes):
            left = _MARGIN + plane * (plane_width + _PLANE_GAP)
            for row, names in enumerate(tiers):
                y = highest + row * row_height
                # With few nodes on a wide plane, boxes may be wider.
                box_width = min(_WIDEST, plane_width / len(names)) * 0.78
                _row(names, left, plane_width, y, (box_width, height), boxes)
            centres.append(left + plane_width / 2)
        top = highest + max(map(len, planes)) * row_height
        scale = min(1.0, max(0.25, spacing / 40))
        if fabric.scale_up is not None:
            hosts = _host_boxes(groups, width, top, height)
            places = {name: place for names, box in hosts.items() for name, place in _rank_places(names, box)}
            size = (width + 2 * _MARGIN, top + height + _MARGIN)
            return cls(boxes, {}, {}, centres, *size, scale, hosts, places, _aside(fabric, boxes))
        blocks, bottom = _blocks(groups, width, top, across, boxes)
        block_of = {name: block for names, block in blocks.items() for name in names}
        size = (width + 2 * _MARGIN, bottom + _MARGIN)
        return cls(boxes, blocks, block_of, centres, *size, scale, aside=_aside(fabric, boxes))


def _has_arcs(fabric: FabricSpec, names: Sequence[str]) -> bool:
    row = set(names)
    return any(port.peer.node in row for name in names for port in fabric.switch(name).fabric_ports)


def _aside(fabric: FabricSpec, boxes: Mapping[str, Box]) -> dict[Endpoint, float]:
    if not fabric.has_parallel_links:
        return {}
    places = {}
    for link in fabric.links:
        between = fabric.links_between(link.a.node, link.b.node)
        widths = [boxes[end.node].width for end in (link.a, link.b) if end.node in boxes]
        step = min([_MOST_ASIDE, *(0.8 * width / len(between) for width in widths)])
        places[link.a] = (between.index(link) - (len(between) - 1) / 2) * step
    return places


def rows_of(fabric: FabricSpec, plane: int) -> list[list[str]]:
    """Return the names of a plane's switches in rows, the uppermost first, as the topology's kind lays them out."""
    return kind_of(fabric).rows(fabric, plane)


def kind_of(fabric: FabricSpec) -> TopologyKind:
    """Return a fabric's kind of topology."""
    # Not at the top: see weft/topologies/__init__.py.
    from weft.topologies.kinds import DEFAULT_KIND, TOPOLOGY_KINDS

    return TOPOLOGY_KINDS.named(str(fabric.parameters.get("kind", DEFAULT_KIND)))


def _hosts_of_ranks(fabric: FabricSpec) -> list[tuple[str, ...]]:
    """Return the names of every host's ranks; an empty list if each host is one rank."""
    if fabric.scale_up is None:
        return []
    return [tuple(fabric.hosts[rank].name for rank in ranks) for ranks in fabric.scale_up.hosts(len(fabric.hosts))]


def _host_boxes(groups: Sequence[tuple[str, ...]], width: float, y: float, height: float) -> dict[tuple[str, ...], Box]:
    """Place hosts of several ranks in one row."""
    each = width / len(groups)
    return {
        names: Box(_MARGIN + each * (place + 0.5), y, min(4 * _WIDEST, 0.8 * each), height)
        for place, names in enumerate(groups)
    }


def _rank_places(names: Sequence[str], box: Box) -> list[tuple[str, tuple[float, float]]]:
    """Return where the links of each rank begin: side by side at the upper edge of its host."""
    step = box.width / len(names)
    left, upper = box.x - box.width / 2, box.y - box.height / 2
    return [(name, (left + step * (place + 0.5), upper)) for place, name in enumerate(names)]


def _groups(hosts: Sequence[HostSpec]) -> list[tuple[str, ...]]:
    """Group hosts by the leaves they are attached to."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        groups.setdefault(tuple(nic.switch for nic in host.nics), []).append(host.name)
    return [tuple(names) for names in groups.values()]


def _row(
    names: Sequence[str],
    left: float,
    width: float,
    y: float,
    size: tuple[float, float],
    boxes: dict[str, Box],
) -> None:
    for place, name in enumerate(names):
        boxes[name] = Box(left + width * (2 * place + 1) / (2 * len(names)), y, *size)


def _blocks(
    groups: Sequence[tuple[str, ...]], width: float, top: float, across: int, boxes: dict[str, Box]
) -> tuple[dict[tuple[str, ...], Box], float]:
    """Place every group's hosts, row by row, and return the blocks and the lower edge of the lowest host."""
    group_width = width / len(groups)
    in_blocks = max(map(len, groups)) > across
    cell = min(_WIDEST, group_width / (across + (0.8 if in_blocks else 0.0)))
    height = min(_NODE_HEIGHT, max(0.6 * cell, 7.0))
    gap = max(2.0, 0.2 * height)
    blocks = {}
    bottom = top
    for number, group in enumerate(groups):
        middle = _MARGIN + group_width * (number + 0.5)
        for index, name in enumerate(group):
            row, column = divmod(index, across)
            x = middle + (column - (min(across, len(group)) - 1) / 2) * cell
            boxes[name] = Box(x, top + row * (height + gap), cell * 0.78, height)
        rows = -(-len(group) // across)
        lowest = top + (rows - 1) * (height + gap) + height / 2
        bottom = max(bottom, lowest)
        if rows > 1:
            framed = lowest - top + height / 2
            blocks[group] = Box(middle, top - height / 2 + framed / 2, across * cell, framed + 2 * _BLOCK_PADDING)
    return blocks, bottom + (_BLOCK_PADDING + 14 if blocks else 0)
