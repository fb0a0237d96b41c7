"""Fabrics without tiers, in which every switch has hosts; shared by tori, HyperX and dragonflies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Unpack

from weft.topologies import addressing
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import require_range
from weft.topologies.fabric import FabricSpec, LinkSpec
from weft.topologies.limits import LinkArguments, PlaneLinks

Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class FlatParameters:
    """Validated parameters that all flat fabrics share: planes, hosts on each switch, and their links."""

    planes: int
    hosts_per_switch: int
    links: PlaneLinks

    @classmethod
    def checked(cls, planes: int, hosts_per_switch: int, **links: Unpack[LinkArguments]) -> FlatParameters:
        """Return checked parameters. Raises TopologyError."""
        return cls(
            require_range("planes", planes, 1, addressing.MAX_PLANES),
            require_range("hosts_per_switch", hosts_per_switch, 1, addressing.MAX_PORTS),
            PlaneLinks.checked(**links),
        )

    @property
    def described(self) -> dict[str, object]:
        """The parameters as `FabricSpec.parameters` has them."""
        return {"planes": self.planes, "hosts_per_switch": self.hosts_per_switch, **asdict(self.links)}


@dataclass(frozen=True)
class FlatLink:
    """A link between two switches, given by their coordinates."""

    a: Coordinates
    b: Coordinates
    link: LinkSpec


def build_flat(
    role: str,
    parameters: FlatParameters,
    places: Sequence[Coordinates],
    links: Callable[[], Iterable[FlatLink]],
    described: Mapping[str, object],
    *,
    grouped: bool = False,
) -> FabricSpec:
    """Return a fabric with a switch and its hosts at each place of each plane, joined by the given links.

    Args:
        role: the switches' role.
        parameters: figures of every plane.
        places: coordinates of the switches, in order of their numbers.
        links: returns the links of a plane.
        described: stored as `FabricSpec.parameters`.
        grouped: whether the first coordinate is a switch's group.

    Raises:
        TopologyError: a switch has too few ports, or the address space is too small.

    """
    require_links(parameters.planes * len(places) * parameters.hosts_per_switch, "the fabric's hosts")
    builder = FabricBuilder()
    switches = [
        {
            place: builder.add_switch(plane, role, coordinates=place, group=place[0] if grouped else None)
            for place in places
        }
        for plane in range(parameters.planes)
    ]
    builder.add_hosts(
        [list(of_plane.values()) for of_plane in switches],
        parameters.hosts_per_switch,
        parameters.links.host_link,
    )
    for of_plane in switches:
        for each in links():
            builder.add_link(of_plane[each.a], of_plane[each.b], each.link)
    return builder.build(described)
