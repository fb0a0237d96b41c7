"""HyperX: a grid of switches; any two that differ in one coordinate are linked (Ahn et al., SC 2009)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from math import prod
from typing import Annotated, Final, Literal

from pydantic import Field

from weft.quantities.definitions import Rate, whole
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.flat import FlatLink, FlatParameters, build_flat
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.kinds.torus import LONGEST, MOST_DIMENSIONS, grid_shape
from weft.topologies.places import complete_grid_clusters, grid_places

NAME: Final = "hyperx"


class HyperXSection(TopologySection):
    """A HyperX: a grid of switches, each linked to all others in its rows."""

    kind: Literal["hyperx"] = NAME
    """A HyperX; one dimension is a full mesh, two of equal length a flattened butterfly."""
    shape: Annotated[
        list[Annotated[int, whole(1, LONGEST)]], Field(min_length=1, max_length=MOST_DIMENSIONS)
    ] = Field([4, 4])
    """Switches in each dimension: `[4, 4]`."""
    trunks: Annotated[list[Annotated[int, whole(1, MAX_PORTS)]], Field(max_length=MOST_DIMENSIONS)] = Field(
        []
    )
    """Parallel links between two switches, for each dimension; by default one."""
    fabric_rate: Rate | None = None
    """Rate of the links between switches; by default `host_rate`."""

    @property
    def leaf_count(self) -> int:
        """Switches of a plane."""
        return prod(self.shape)

    def check(self) -> None:
        """Check that `trunks` fits `shape`, and the shared keys."""
        if self.trunks and len(self.trunks) != len(self.shape):
            raise TopologyKeyError(
                "trunks",
                f"has {len(self.trunks)} values for {len(self.shape)} dimensions (valid: one for each)",
            )
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return hyperx(
            shape=self.shape,
            trunks=self.trunks,
            hosts_per_switch=self.endpoints_per_leaf,
            **self.network_arguments(self.fabric_rate),
        )


def hyperx(
    planes: int = 1,
    shape: Sequence[int] = (4, 4),
    trunks: Sequence[int] = (),
    hosts_per_switch: int = 1,
    host_rate_bps: float = 10e9,
    fabric_rate_bps: float | None = None,
    delay_ps: int = 1_000_000,
    queue_capacity_bytes: int | None = None,
) -> FabricSpec:
    """Describe `planes` HyperX networks that share their hosts: L dimensions of S switches, K links, T hosts a switch.

    Args:
        planes: independent planes; a host has one NIC in each.
        shape: switches in each dimension (S), the first one slowest.
        trunks: parallel links between two switches (K), for each dimension; one by default.
        hosts_per_switch: hosts on each switch (T).
        host_rate_bps: rate of the links between hosts and switches.
        fabric_rate_bps: rate of the links between switches; the hosts' rate by default.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    lengths = grid_shape(shape)
    if trunks and len(trunks) != len(lengths):
        raise TopologyError(
            f"trunks={list(trunks)} has {len(trunks)} values for {len(lengths)} dimensions (valid: one for each)"
        )
    counts = tuple(
        require_range(f"trunks[{place}]", count, 1, MAX_PORTS)
        for place, count in enumerate(trunks or [1] * len(lengths))
    )
    parameters = FlatParameters.checked(
        planes, hosts_per_switch, host_rate_bps, fabric_rate_bps, delay_ps, queue_capacity_bytes
    )
    ports = sum(count * (length - 1) for count, length in zip(counts, lengths, strict=True))
    most = MAX_PORTS - parameters.hosts_per_switch
    if ports > most:
        raise TopologyError(
            f"shape={list(lengths)} takes {ports} ports of a switch in addition to {parameters.hosts_per_switch} for "
            f"hosts (valid: at most {most})"
        )
    require_links(prod(lengths) * ports // 2, f"shape={list(lengths)}")

    def links() -> Iterator[FlatLink]:
        for a in product(*map(range, lengths)):
            for dimension, length in enumerate(lengths):
                for other in range(a[dimension] + 1, length):
                    b = (*a[:dimension], other, *a[dimension + 1 :])
                    yield from [FlatLink(a, b, parameters.fabric_link)] * counts[dimension]

    return build_flat(
        "switch",
        parameters,
        list(product(*map(range, lengths))),
        links,
        {"kind": NAME, "shape": lengths, "trunks": counts, **asdict(parameters)},
    )


KIND = TopologyKind(
    NAME, HyperXSection, hyperx, implied_by=("trunks",), places=grid_places, clusters=complete_grid_clusters
)
