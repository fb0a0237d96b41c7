"""HyperX: a grid of switches; any two that differ in one coordinate are linked (Ahn et al., SC 2009)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Annotated, Final, Literal, Unpack

from pydantic import Field

from weft.quantities.definitions import whole
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.flat import FlatLink, FlatParameters, build_flat
from weft.topologies.kinds.base import TopologyKind
from weft.topologies.kinds.torus import MOST_DIMENSIONS, GridSection, grid_shape
from weft.topologies.limits import LinkArguments
from weft.topologies.places import complete_grid_clusters, grid_places

NAME: Final = "hyperx"


class HyperXSection(GridSection):
    """A HyperX: a grid of switches, each linked to all others in its rows."""

    kind: Literal["hyperx"] = NAME
    """A HyperX; one dimension is a full mesh, two of equal length a flattened butterfly."""
    trunks: Annotated[list[Annotated[int, whole(1, MAX_PORTS)]], Field(max_length=MOST_DIMENSIONS)] = Field([])
    """Parallel links between two switches, for each dimension; by default one."""

    def check(self) -> None:
        """Check that `trunks` fits `shape`, and the shared keys."""
        if self.trunks:
            self.check_dimensions("trunks", self.trunks)
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return hyperx(shape=self.shape, trunks=self.trunks, **self.flat_arguments())


def hyperx(
    planes: int = 1,
    shape: Sequence[int] = (4, 4),
    trunks: Sequence[int] = (),
    hosts_per_switch: int = 1,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` HyperX networks that share their hosts: L dimensions of S switches, K links, T hosts a switch.

    Args:
        planes: independent planes; a host has one NIC in each.
        shape: switches in each dimension (S), the first one slowest.
        trunks: parallel links between two switches (K), for each dimension; one by default.
        hosts_per_switch: hosts on each switch (T).
        links: rates, delay and queues (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    lengths = grid_shape(shape)
    if trunks and len(trunks) != len(lengths):
        raise TopologyError(
            f"trunks={list(trunks)} has {len(trunks)} values for {len(lengths)} dimensions",
            valid="one for each",
        )
    counts = tuple(
        require_range(f"trunks[{place}]", count, 1, MAX_PORTS)
        for place, count in enumerate(trunks or [1] * len(lengths))
    )
    parameters = FlatParameters.checked(planes, hosts_per_switch, **links)
    ports = sum(count * (length - 1) for count, length in zip(counts, lengths, strict=True))
    most = MAX_PORTS - parameters.hosts_per_switch
    if ports > most:
        raise TopologyError(
            f"shape={list(lengths)} takes {ports} ports of a switch in addition to {parameters.hosts_per_switch} for "
            "hosts",
            valid=f"at most {most}",
        )
    require_links(prod(lengths) * ports // 2, f"shape={list(lengths)}")

    def links_of_plane() -> Iterator[FlatLink]:
        for a in product(*map(range, lengths)):
            for dimension, length in enumerate(lengths):
                for other in range(a[dimension] + 1, length):
                    b = (*a[:dimension], other, *a[dimension + 1 :])
                    yield from [FlatLink(a, b, parameters.links.fabric_link)] * counts[dimension]

    return build_flat(
        "switch",
        parameters,
        list(product(*map(range, lengths))),
        links_of_plane,
        {"kind": NAME, "shape": lengths, "trunks": counts, **parameters.described},
    )


KIND = TopologyKind(
    NAME, HyperXSection, hyperx, implied_by=("trunks",), places=grid_places, clusters=complete_grid_clusters
)
