"""Where switches without tiers stand in a drawing, in units of the distance between two neighbours."""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.topologies.fabric import FabricSpec

Places = Mapping[str, tuple[float, float]]
"""By switch name: to the right, and down."""
_PITCH = 1.25
"""Of a switch on a circle, along it."""
_DEPTH = (0.8, 0.62)
"""To the right, and up: from a switch to the one behind it in a third dimension."""


def grid_places(fabric: FabricSpec, plane: int) -> Places:
    """Return places by coordinates: columns by the last, rows by the one before, behind each other by the third last.

    Dimensions before these make blocks side by side and below each other. A single row stands in a circle.
    """
    switches = fabric.switches_of_plane(plane)
    lengths = [max(values) + 1 for values in zip(*(switch.coordinates for switch in switches), strict=True)]
    if max(lengths) == math.prod(lengths):
        return {
            switch.name: _on_circle(number, len(switches), _radius(len(switches)))
            for number, switch in enumerate(switches)
        }
    depth = lengths[-3] if len(lengths) > 2 else 1
    step_x, step_y = (1.0, 1.0) if depth == 1 else (depth * _DEPTH[0] + 0.6, depth * _DEPTH[1] + 0.6)
    places = {}
    for switch in switches:
        *others, behind, row, column = (0, 0, *switch.coordinates) if len(lengths) < 3 else switch.coordinates
        x, y = column * step_x + behind * _DEPTH[0], row * step_y - behind * _DEPTH[1]
        width, height = lengths[-1] * step_x + 0.5, (lengths[-2] if len(lengths) > 1 else 1) * step_y + 0.5
        for level, (coordinate, length) in enumerate(
            zip(reversed(others), reversed(lengths[:-3]), strict=False)
        ):
            if level % 2 == 0:
                x, width = x + coordinate * width, width * length + 0.5
            else:
                y, height = y + coordinate * height, height * length + 0.5
        places[switch.name] = (x, y)
    return places


def group_places(fabric: FabricSpec, plane: int) -> Places:
    """Return places of groups: each a circle of its switches, all of them in a circle."""
    groups: dict[int | None, list[str]] = {}
    for switch in fabric.switches_of_plane(plane):
        groups.setdefault(switch.group, []).append(switch.name)
    largest = _radius(max(map(len, groups.values())))
    around = (2 * largest + 1.5) * len(groups) / (2 * math.pi)
    places = {}
    for number, names in enumerate(groups.values()):
        middle = _on_circle(number, len(groups), max(around, largest + 1.5))
        for place, name in enumerate(names):
            x, y = _on_circle(place, len(names), largest if len(names) > 1 else 0.0)
            places[name] = (middle[0] + x, middle[1] + y)
    return places


def _radius(count: int) -> float:
    return max(0.8, count * _PITCH / (2 * math.pi))


def _on_circle(number: int, count: int, radius: float) -> tuple[float, float]:
    angle = 2 * math.pi * number / count - math.pi / 2
    return radius * math.cos(angle), radius * math.sin(angle)
