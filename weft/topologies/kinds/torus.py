"""Tori and meshes: a switch at every point of a grid, linked to its neighbours in each dimension.

Terms follow W. Dally and B. Towles, Principles and Practices of Interconnection Networks, chapter 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Annotated, Final, Literal, Unpack

from pydantic import Field

from weft.quantities.definitions import whole
from weft.topologies.builder import require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.flat import Coordinates, FlatLink, FlatParameters, build_flat
from weft.topologies.kinds.base import FabricRateSection, TopologyKeyError, TopologyKind
from weft.topologies.limits import LinkArguments
from weft.topologies.places import grid_clusters, grid_places

NAME: Final = "torus"
MOST_DIMENSIONS = 8
LONGEST = 4096
"""Most switches in a row."""


class GridSection(FabricRateSection):
    """A section with a grid of switches, each with hosts."""

    shape: Annotated[list[Annotated[int, whole(1, LONGEST)]], Field(min_length=1, max_length=MOST_DIMENSIONS)] = Field(
        [4, 4]
    )
    """Switches in each dimension: `[4, 4, 4]`."""

    @property
    def leaf_count(self) -> int:
        """Switches of a plane."""
        return prod(self.shape)

    def check_dimensions(self, key: str, values: Sequence[int]) -> None:
        """Check that a key has a value for each dimension."""
        if len(values) != len(self.shape):
            raise TopologyKeyError(
                key, f"has {len(values)} values for {len(self.shape)} dimensions", valid="one for each"
            )


class TorusSection(GridSection):
    """A torus or mesh of switches, each with hosts."""

    kind: Literal["torus"] = NAME
    """A torus or mesh; a section with `shape` is of this kind."""
    wrap: bool | Annotated[list[bool], Field(min_length=1, max_length=MOST_DIMENSIONS)] = True
    """Whether the ends of a row are linked (a torus) or not (a mesh); one value for all dimensions, or one for each."""

    def check(self) -> None:
        """Check that `wrap` fits `shape`, and the shared keys."""
        if not isinstance(self.wrap, bool):
            self.check_dimensions("wrap", self.wrap)
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return torus(shape=self.shape, wrap=self.wrap, **self.flat_arguments())


def torus(
    planes: int = 1,
    shape: Sequence[int] = (4, 4),
    wrap: bool | Sequence[bool] = True,
    hosts_per_switch: int = 1,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` tori or meshes that share their hosts.

    A row of two switches has one link even with wrap-around, because the second link would join the same two.

    Args:
        planes: independent planes; a host has one NIC in each.
        shape: switches in each dimension, the first one slowest: switch 1 of a (4, 4) torus has coordinates (0, 1).
        wrap: whether a dimension's last switch is linked to its first one; one value for all, or one for each.
        hosts_per_switch: hosts on each switch.
        links: rates, delay and queues (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    lengths, wraps = grid_shape(shape), _wrap(wrap, len(shape))
    parameters = FlatParameters.checked(planes, hosts_per_switch, **links)
    require_links(prod(lengths), f"shape={list(lengths)}")
    link = parameters.links.fabric_link
    return build_flat(
        "node",
        parameters,
        list(product(*map(range, lengths))),
        lambda: (FlatLink(a, b, link) for a, b in neighbours(lengths, wraps)),
        {"kind": NAME, "shape": lengths, "wrap": wraps, **parameters.described},
    )


def neighbours(shape: Sequence[int], wrap: Sequence[bool]) -> Iterator[tuple[Coordinates, Coordinates]]:
    """Yield the ends of every link of a grid: a place and the next one in some dimension."""
    for place in product(*(range(length) for length in shape)):
        for dimension, length in enumerate(shape):
            after = place[dimension] + 1
            if after == length and (not wrap[dimension] or length <= 2):
                continue
            yield place, (*place[:dimension], after % length, *place[dimension + 1 :])


def grid_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Check the lengths of a grid's dimensions and return them; raises TopologyError."""
    if not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise TopologyError(f"shape={list(shape)} has {len(shape)} dimensions", valid=f"1 to {MOST_DIMENSIONS}")
    return tuple(require_range(f"shape[{place}]", length, 1, LONGEST) for place, length in enumerate(shape))


def _wrap(wrap: bool | Sequence[bool], dimensions: int) -> tuple[bool, ...]:
    values = (wrap,) * dimensions if isinstance(wrap, bool) else tuple(wrap)
    if len(values) != dimensions:
        raise TopologyError(
            f"wrap={list(values)} has {len(values)} values for {dimensions} dimensions", valid="one for each"
        )
    return values


KIND = TopologyKind(NAME, TorusSection, torus, implied_by=("shape",), places=grid_places, clusters=grid_clusters)
