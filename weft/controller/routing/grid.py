"""The grid defined by switches' coordinates: its rows, and the switches that share a coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from weft.topologies import SwitchSpec

Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """Switches that differ in only one coordinate, as places in the plane, ordered by that coordinate.

    A complete row has a link between any two switches; other rows have links between neighbours and, in a ring, between
    the last and the first switch. Rows of three are rings if all three are linked.
    """

    places: tuple[int, ...]
    is_ring: bool
    is_complete: bool

    @property
    def length(self) -> int:
        """Number of switches in the row."""
        return len(self.places)


class Grid:
    """A plane's switches by their coordinates; `objection_to_grid` says whether they make a grid."""

    def __init__(self, switches: Sequence[SwitchSpec]) -> None:
        self._switches = switches
        self.shape = shape_of(switches)
        self._places = {switch.coordinates: place for place, switch in enumerate(switches)}
        self._of_name = {switch.name: place for place, switch in enumerate(switches)}
        self._coordinates = [[0] * length for length in self.shape]
        for place, switch in enumerate(switches):
            for dimension, coordinate in enumerate(switch.coordinates):
                self._coordinates[dimension][coordinate] |= 1 << place
        self._rows: dict[tuple[int, Coordinates], Row] = {}

    def place_of(self, name: str) -> int:
        """Return the place of a switch in the plane."""
        return self._of_name[name]

    def with_coordinate(self, dimension: int, coordinate: int) -> int:
        """Return the switches with a coordinate, as bits by their place."""
        return self._coordinates[dimension][coordinate]

    def rows_of(self, place: int) -> list[Row]:
        """Return the rows that a switch is in, one for each dimension."""
        return [self._row(dimension, self._switches[place].coordinates) for dimension in range(len(self.shape))]

    def _row(self, dimension: int, coordinates: Coordinates) -> Row:
        key = dimension, (*coordinates[:dimension], *coordinates[dimension + 1 :])
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = self._find_row(dimension, coordinates)
        return found

    def _find_row(self, dimension: int, coordinates: Coordinates) -> Row:
        length = self.shape[dimension]
        places = tuple(
            self._places[(*coordinates[:dimension], each, *coordinates[dimension + 1 :])] for each in range(length)
        )
        peers = [{self._of_name[port.peer.node] for port in self._switches[place].fabric_ports} for place in places]
        is_ring = length > 2 and places[0] in peers[-1]
        is_complete = length > 3 and all(
            {*places} - {place} <= linked for place, linked in zip(places, peers, strict=True)
        )
        return Row(places, is_ring and not is_complete, is_complete)

    @cached_property
    def has_rings(self) -> bool:
        """Whether some row is a ring."""
        return any(row.is_ring for place in range(len(self._switches)) for row in self.rows_of(place))


def shape_of(switches: Sequence[SwitchSpec]) -> tuple[int, ...]:
    """Return the number of coordinates in each dimension."""
    return tuple(max(values) + 1 for values in zip(*(switch.coordinates for switch in switches), strict=True))


def objection_to_grid(switches: Sequence[SwitchSpec]) -> str:
    """Return why switches do not form a grid that dimension order can route; empty if they do."""
    dimensions = {len(switch.coordinates) for switch in switches}
    if len(dimensions) != 1 or dimensions == {0}:
        return "its switches have no coordinates of one grid"
    shape = shape_of(switches)
    of_name = {switch.name: switch.coordinates for switch in switches}
    if len({*of_name.values()}) != len(switches) or prod(shape) != len(switches):
        return (
            f"its {len(switches)} switches are not one at each place of a grid of {list(shape)} "
            "(valid: tori, meshes, HyperX)"
        )
    for switch in switches:
        for port in switch.fabric_ports:
            peer = of_name[port.peer.node]
            differing = [
                dimension for dimension, (a, b) in enumerate(zip(switch.coordinates, peer, strict=True)) if a != b
            ]
            if len(differing) != 1:
                return f"{switch.name} and {port.peer.node} are linked but differ in {len(differing)} coordinates"
    grid = Grid(switches)
    for place, switch in enumerate(switches):
        for dimension, row in enumerate(grid.rows_of(place)):
            if not _is_row(switches, grid, place, row):
                return f"{switch.name} has links in dimension {dimension} that no ring, mesh or HyperX has"
    return ""


def _is_row(switches: Sequence[SwitchSpec], grid: Grid, place: int, row: Row) -> bool:
    """Return whether a switch's links match its row: to all switches, or to the neighbours on both sides."""
    here = row.places.index(place)
    linked = {grid.place_of(port.peer.node) for port in switches[place].fabric_ports} & {*row.places}
    beside = {here - 1, here + 1}
    if row.is_ring:
        beside = {each % row.length for each in beside}
    expected = {row.places[each] for each in beside if 0 <= each < row.length}
    return row.is_complete or linked == expected
