"""A torus of cubes: optical circuit switches join the faces of cubes of switches into tori of different shapes.

After N. Jouppi et al., TPU v4: An Optically Reconfigurable Supercomputer (ISCA 2023), section 2: 48 circuit switches
join cubes of 4³. Each circuit switch has the links of one place on a pair of opposite faces, from all cubes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Annotated, Final, Literal, Unpack

from pydantic import Field

from weft.quantities.definitions import whole
from weft.topologies.builder import FabricBuilder, NewCircuitSwitch, NewSwitch, require_configurations
from weft.topologies.circuits import (
    MOST_CONFIGURATIONS,
    Circuit,
    CircuitConfiguration,
    ConfigurationName,
)
from weft.topologies.errors import TopologyError, nearest_multiples, require_range
from weft.topologies.fabric import Endpoint, FabricSpec
from weft.topologies.flat import Coordinates, FlatParameters
from weft.topologies.kinds.base import CircuitsSection, TopologyKind
from weft.topologies.kinds.torus import LONGEST, neighbours
from weft.topologies.limits import LinkArguments
from weft.topologies.places import grid_places

NAME: Final = "cubes"
DIMENSIONS = 3
LARGEST_EDGE = 16
_DEFAULT_SHAPES: Mapping[str, Sequence[int]] = {"torus": (4, 4, 4)}
Shape = Annotated[list[Annotated[int, whole(1, LONGEST)]], Field(min_length=DIMENSIONS, max_length=DIMENSIONS)]


class CubesSection(CircuitsSection):
    """Cubes of switches with hosts; optical circuit switches join the cubes' faces into a torus."""

    kind: Literal["cubes"] = NAME
    """Cubes joined by circuits; a section with `shapes` is of this kind."""
    cube: Annotated[int, whole(1, LARGEST_EDGE)] = 4
    """Switches along the edge of a cube."""
    shapes: Annotated[dict[ConfigurationName, Shape], Field(min_length=1, max_length=MOST_CONFIGURATIONS)] = Field(
        {"torus": [4, 4, 4]}
    )
    """Configurations of the circuits by name, each with the shape of the torus of all cubes. `{long: [4, 4, 16]}`."""

    @property
    def leaf_count(self) -> int:
        """Switches of a plane."""
        return prod(next(iter(self.shapes.values())))

    def check(self) -> None:
        """Check that all shapes use the same number of whole cubes, and the shared keys."""
        self.check_configurations("shapes", lambda: cube_grids(self.cube, self.shapes))
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return cubes(
            cube=self.cube,
            shapes=self.shapes,
            configuration=self.configuration,
            **self.flat_arguments(),
        )


def cubes(
    planes: int = 1,
    cube: int = 4,
    shapes: Mapping[str, Sequence[int]] = _DEFAULT_SHAPES,
    configuration: str | None = None,
    hosts_per_switch: int = 1,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` tori of cubes that share their hosts.

    In each configuration the switches have the links and coordinates of a `weft.topologies.kinds.torus.torus` of its
    shape. Switches are numbered cube by cube, and within a cube as in a torus of its size.

    Args:
        planes: independent planes; a host has one NIC in each.
        cube: switches along the edge of a cube.
        shapes: configurations of the circuits by name: switches of the torus in each dimension.
        configuration: the initial configuration; the first by default.
        hosts_per_switch: hosts on each switch.
        links: rates, delay and queues (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range, or the shapes do not use the same number of whole cubes.

    """
    edge = require_range("cube", cube, 1, LARGEST_EDGE)
    grids = cube_grids(edge, shapes)
    parameters = FlatParameters.checked(planes, hosts_per_switch, **links)
    count = prod(next(iter(grids.values())))
    link_count = parameters.planes * count * edge**3 * (DIMENSIONS + parameters.hosts_per_switch)
    require_configurations(len(grids), link_count, f"a torus of {count} cubes")
    builder = FabricBuilder()
    of_planes = [_Cubes(builder, plane, edge, count, parameters) for plane in range(parameters.planes)]
    builder.add_hosts(
        [list(of_plane.switches.values()) for of_plane in of_planes],
        parameters.hosts_per_switch,
        parameters.links.host_link,
    )
    for of_plane in of_planes:
        of_plane.add_links()
    builder.set_configurations(
        [
            CircuitConfiguration(
                name,
                tuple(circuit for of_plane in of_planes for circuit in of_plane.circuits(grid)),
                {name: place for of_plane in of_planes for name, place in of_plane.coordinates(grid)},
            )
            for name, grid in grids.items()
        ],
        next(iter(grids)) if configuration is None else configuration,
    )
    described = {name: tuple(shape) for name, shape in shapes.items()}
    return builder.build({"kind": NAME, "cube": edge, "shapes": described, **parameters.described})


class _Cubes:
    """The cubes of a plane. A switch's place is its cube's number and its coordinates in the cube."""

    def __init__(self, builder: FabricBuilder, plane: int, edge: int, count: int, parameters: FlatParameters) -> None:
        self._builder = builder
        self._plane = plane
        self._edge = edge
        self._parameters = parameters
        self.switches: dict[Coordinates, NewSwitch] = {
            place: builder.add_switch(plane, "node", coordinates=place[1:], group=place[0], position=place)
            for place in product(range(count), *(range(edge),) * DIMENSIONS)
        }
        self._faces: dict[tuple[int, bool, Coordinates], Endpoint] = {}
        """Ports by dimension, by whether they are on the face with the largest coordinate, and by switch place."""

    def add_links(self) -> None:
        """Link the switches within cubes, and cable the faces to the circuit switches."""
        link = self._parameters.links.fabric_link
        within = list(neighbours((self._edge,) * DIMENSIONS, (False,) * DIMENSIONS))
        for number in dict.fromkeys(place[0] for place in self.switches):
            for a, b in within:
                self._builder.add_link(self.switches[number, *a], self.switches[number, *b], link)
        optical: dict[Coordinates, NewCircuitSwitch] = {
            at: self._builder.add_circuit_switch(self._plane)
            for at in product(range(DIMENSIONS), range(self._edge), range(self._edge))
        }
        for place, switch in self.switches.items():
            for dimension in range(DIMENSIONS):
                own = place[1 + dimension]
                at = optical[dimension, *_without(place[1:], dimension)]
                for is_last in (True, False):
                    if own == (self._edge - 1 if is_last else 0):
                        port = self._builder.add_circuit_port(switch, at, link)
                        self._faces[dimension, is_last, place] = port

    def circuits(self, grid: Coordinates) -> Iterator[Circuit]:
        """Yield the circuits that join a grid of cubes into a torus."""
        number_of = {at: number for number, at in enumerate(product(*map(range, grid)))}
        for at, number in number_of.items():
            for dimension, length in enumerate(grid):
                wraps = at[dimension] == length - 1
                # A row of two switches has one link, as in kind torus.
                if wraps and length * self._edge <= 2:
                    continue
                after = _with(at, dimension, (at[dimension] + 1) % length)
                for on_face in product(range(self._edge), repeat=DIMENSIONS - 1):
                    last = (number, *_inserted(on_face, dimension, self._edge - 1))
                    first = (number_of[after], *_inserted(on_face, dimension, 0))
                    yield self._faces[dimension, True, last], self._faces[dimension, False, first]

    def coordinates(self, grid: Coordinates) -> Iterator[tuple[str, Coordinates]]:
        """Yield the name of each switch and its coordinates in the torus of a grid of cubes."""
        places = list(product(*map(range, grid)))
        for (number, *within), switch in self.switches.items():
            pairs = zip(places[number], within, strict=True)
            yield switch.name, tuple(cube * self._edge + own for cube, own in pairs)


def cube_grids(edge: int, shapes: Mapping[str, Sequence[int]]) -> dict[str, Coordinates]:
    """Return the number of cubes in each dimension of every shape, by name.

    Raises:
        TopologyError: there are no shapes, or one has partial cubes or another number of cubes than the first.

    """
    if not shapes:
        raise TopologyError("shapes has no configuration", valid="at least 1")
    grids: dict[str, Coordinates] = {}
    for name, shape in shapes.items():
        if len(shape) != DIMENSIONS:
            raise TopologyError(f"shape {list(shape)} has {len(shape)} dimensions", place=name, valid=f"{DIMENSIONS}")
        for length in shape:
            require_range(f"{name}: a length of {list(shape)}", length, 1, LONGEST)
            if length % edge:
                raise TopologyError(
                    f"{length} of {list(shape)} is not whole cubes of {edge}",
                    place=name,
                    valid=nearest_multiples(length, edge),
                )
        grids[name] = tuple(length // edge for length in shape)
    first, *others = ((name, prod(grid)) for name, grid in grids.items())
    for name, count in others:
        if count != first[1]:
            raise TopologyError(
                f"{list(shapes[name])} has {count} cubes, {first[0]} {first[1]}", place=name, valid="the same"
            )
    return grids


def _with(place: Coordinates, dimension: int, coordinate: int) -> Coordinates:
    return (*place[:dimension], coordinate, *place[dimension + 1 :])


def _without(place: Coordinates, dimension: int) -> Coordinates:
    return (*place[:dimension], *place[dimension + 1 :])


def _inserted(place: Coordinates, dimension: int, coordinate: int) -> Coordinates:
    return (*place[:dimension], coordinate, *place[dimension:])


KIND = TopologyKind(NAME, CubesSection, cubes, implied_by=("shapes",), places=grid_places)
