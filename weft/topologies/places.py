"""Places of switches without tiers in a drawing, in units of the distance between two neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.topologies.fabric import FabricSpec

Places = Mapping[str, tuple[float, float]]
"""(x, y) by switch name; x points right, y down."""
_PITCH = 1.25
"""Distance between neighbours along a circle."""
_MOST_IN_A_CIRCLE = 24
_DEPTH = (0.8, 0.62)
"""Offset to the right and up to the next switch in the third dimension."""


def grid_places(fabric: FabricSpec, plane: int) -> Places:
    """Return places by coordinates: the last one is the column, the one before the row, the third last the depth.

    Earlier dimensions form blocks, side by side and below each other. A single row is drawn as a circle.
    """
    return _by_coordinates({switch.name: switch.coordinates for switch in fabric.switches_of_plane(plane)})


def _by_coordinates(coordinates: Mapping[str, Sequence[int]]) -> Places:
    lengths = [max(values) + 1 for values in zip(*coordinates.values(), strict=True)]
    if max(lengths) == math.prod(lengths):
        return circle_of(list(coordinates))
    depth = lengths[-3] if len(lengths) > 2 else 1
    step_x, step_y = (1.0, 1.0) if depth == 1 else (depth * _DEPTH[0] + 0.6, depth * _DEPTH[1] + 0.6)
    places = {}
    for name, own in coordinates.items():
        *others, behind, row, column = (0, 0, *own) if len(lengths) < 3 else own
        x, y = column * step_x + behind * _DEPTH[0], row * step_y - behind * _DEPTH[1]
        width, height = lengths[-1] * step_x + 0.5, (lengths[-2] if len(lengths) > 1 else 1) * step_y + 0.5
        for level, (coordinate, length) in enumerate(zip(reversed(others), reversed(lengths[:-3]), strict=False)):
            if level % 2 == 0:
                x, width = x + coordinate * width, width * length + 0.5
            else:
                y, height = y + coordinate * height, height * length + 0.5
        places[name] = (x, y)
    return places


def circle_of(names: Sequence[str]) -> Places:
    """Return places around a circle, starting at the top."""
    radius = _radius(len(names))
    return {name: _on_circle(number, len(names), radius) for number, name in enumerate(names)}


def circle_without_tiers(fabric: FabricSpec, plane: int) -> Places | None:
    """Return places if a plane's switches share one tier and some are linked; else None.

    Switches in a line are placed in a line, others around a circle.
    """
    switches = fabric.switches_of_plane(plane)
    if len({switch.tier for switch in switches}) > 1 or not any(switch.fabric_ports for switch in switches):
        return None
    line = _line_of({switch.name: {port.peer.node for port in switch.fabric_ports} for switch in switches})
    return {name: (_PITCH * number, 0.0) for number, name in enumerate(line)} or circle_of(
        [switch.name for switch in switches]
    )


def _line_of(neighbours: Mapping[str, set[str]]) -> list[str]:
    """Return nodes in the order of the line that their links make; an empty list if they make none."""
    ends = [name for name, beside in neighbours.items() if len(beside) == 1]
    if len(ends) != 2 or any(len(beside) > 2 for beside in neighbours.values()):
        return []
    line, before = [ends[0]], ""
    while following := neighbours[line[-1]] - {before}:
        before = line[-1]
        line.append(following.pop())
    return line if len(line) == len(neighbours) else []


@dataclass(frozen=True)
class Cluster:
    """Switches drawn as one box in a large fabric, with the box's label and place."""

    label: str
    switches: tuple[str, ...]
    place: tuple[float, float]


def grid_clusters(fabric: FabricSpec, plane: int, most: int = 64) -> list[Cluster]:
    """Return at most `most` blocks of a grid, by ranges of coordinates."""
    switches = fabric.switches_of_plane(plane)
    lengths = [1 + max(values) for values in zip(*(each.coordinates for each in switches), strict=True)]
    sizes = [1] * len(lengths)
    while math.prod(counts := [-(-length // size) for length, size in zip(lengths, sizes, strict=True)]) > most:
        sizes[counts.index(max(counts))] *= 2
    blocks: dict[tuple[int, ...], list[str]] = {}
    for switch in switches:
        at = tuple(coordinate // size for coordinate, size in zip(switch.coordinates, sizes, strict=True))
        blocks.setdefault(at, []).append(switch.name)
    names = {
        at: ", ".join(
            _range(block * size, min(length, (block + 1) * size) - 1)
            for block, size, length in zip(at, sizes, lengths, strict=True)
        )
        for at in blocks
    }
    places = _by_coordinates({names[at]: at for at in blocks})
    return [Cluster(names[at], tuple(members), places[names[at]]) for at, members in blocks.items()]


def complete_grid_clusters(fabric: FabricSpec, plane: int) -> list[Cluster]:
    """Return blocks of a grid with fully joined rows: fewer, since each block has links to many others."""
    return grid_clusters(fabric, plane, 16)


def group_clusters(fabric: FabricSpec, plane: int) -> list[Cluster]:
    """Return the groups of a plane in a circle; neighbouring groups are merged if there are too many."""
    groups: dict[int, list[str]] = {}
    for switch in fabric.switches_of_plane(plane):
        groups.setdefault(switch.group or 0, []).append(switch.name)
    together = -(-len(groups) // _MOST_IN_A_CIRCLE)
    listed = list(groups.items())
    parts = [listed[first : first + together] for first in range(0, len(listed), together)]
    places = list(circle_of([str(number) for number in range(len(parts))]).values())
    return [
        Cluster(
            f"group{'s' if len(part) > 1 else ''} {_range(part[0][0], part[-1][0])}",
            tuple(name for _, members in part for name in members),
            place,
        )
        for part, place in zip(parts, places, strict=True)
    ]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}–{last}"


def group_places(fabric: FabricSpec, plane: int) -> Places:
    """Return places of groups in a circle; each group is a circle of its switches."""
    groups: dict[int | None, list[str]] = {}
    for switch in fabric.switches_of_plane(plane):
        groups.setdefault(switch.group, []).append(switch.name)
    largest = _radius(max(map(len, groups.values())))
    around = (2 * largest + 2.4) * len(groups) / (2 * math.pi)
    places = {}
    for number, names in enumerate(groups.values()):
        middle = _on_circle(number, len(groups), max(around, largest + 1.5))
        for place, name in enumerate(names):
            x, y = _on_circle(place, len(names), largest if len(names) > 1 else 0.0)
            places[name] = (middle[0] + x, middle[1] + y)
    return places


def two_row_group_places(fabric: FabricSpec, plane: int) -> Places:
    """Return places of groups around a circle: the lowest tier outermost, each higher tier one row further in."""
    groups: dict[int | None, dict[int, list[str]]] = {}
    for switch in fabric.switches_of_plane(plane):
        groups.setdefault(switch.group, {}).setdefault(switch.tier, []).append(switch.name)
    widest = max(len(names) for tiers in groups.values() for names in tiers.values())
    around = max(1.5, (widest + 1.25) * len(groups) / (2 * math.pi))
    places = {}
    for number, tiers in enumerate(groups.values()):
        angle = 2 * math.pi * number / len(groups) - math.pi / 2
        outward = (math.cos(angle), math.sin(angle))
        for row, (_, names) in enumerate(sorted(tiers.items(), reverse=True)):
            for place, name in enumerate(names):
                out, along = around + 1.2 * row, place - (len(names) - 1) / 2
                places[name] = (
                    outward[0] * out - outward[1] * along,
                    outward[1] * out + outward[0] * along,
                )
    return places


def _radius(count: int) -> float:
    return max(0.8, count * _PITCH / (2 * math.pi))


def _on_circle(number: int, count: int, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * number / count - math.pi / 2
    return radius * math.cos(angle), radius * math.sin(angle)
