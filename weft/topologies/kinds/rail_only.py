"""Rail-only fabrics: a separate network for the ranks of each number (Wang et al., Hot Interconnects 2024).

Ranks with the same number on all hosts form a rail. Data that changes rails crosses the scale-up links inside a host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, ClassVar, Final, Literal, Unpack

from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.topologies import addressing
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.kinds.base import FabricRateSection, TopologyKeyError, TopologyKind
from weft.topologies.limits import LinkArguments, PlaneLinks

NAME: Final = "rail_only"


class RailOnlySection(FabricRateSection):
    """A network for each rail, which is the ranks with the same number on all hosts. Rails meet only inside hosts."""

    refused: ClassVar[Mapping[str, str]] = {"spares": "hosts of several ranks have none"}

    kind: Literal["rail_only"] = NAME
    """Separate rails."""
    ranks_per_host: Annotated[int, whole(2, 64)] | None = 8
    """Ranks of a host, each on a different rail; each is an endpoint (h0, h1, …) of the fabric."""
    rail_optimised: Annotated[bool, Example("true")] = True
    """Always true: every rank of a host is on a different leaf."""
    blocks: Annotated[int, whole(1, MAX_PORTS), Example("2", (".spines_per_rail=2",))] = 1
    """Groups of `hosts_per_leaf` hosts; each rail has a leaf for each group."""
    spines_per_rail: Annotated[int, whole(0, MAX_PORTS, example="2")] = 0
    """Spines that join a rail's leaves; several blocks need at least one."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.blocks * (self.ranks_per_host or 1)

    def check(self) -> None:
        """Check that hosts have several ranks and each rail joins its hosts, and the shared keys."""
        if self.ranks_per_host is None:
            raise TopologyKeyError("ranks_per_host", "rails are of hosts with several ranks", valid="2 to 64")
        if not self.rail_optimised:
            raise TopologyKeyError("rail_optimised", "false: without rails it is a leaf_spine fabric", valid="true")
        if self.blocks > 1 and self.spines_per_rail == 0:
            raise TopologyKeyError("spines_per_rail", f"0 cannot join {self.blocks} blocks; at least 1 is needed")
        if self.blocks * self.hosts_per_leaf < 2:
            raise TopologyKeyError("hosts_per_leaf", "a rail of one host leads nowhere", valid="at least 2")
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return rail_only(
            rails=self.ranks_per_host or 1,
            blocks=self.blocks,
            hosts_per_leaf=self.hosts_per_leaf,
            spines_per_rail=self.spines_per_rail,
            **self.network_arguments(self.fabric_rate),
        )


def rail_only(
    planes: int = 1,
    rails: int = 8,
    blocks: int = 1,
    hosts_per_leaf: int = 2,
    spines_per_rail: int = 0,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe rails without links between them; `with_scale_up(…, rail_optimised=True)` joins them inside hosts.

    Args:
        planes: independent planes; an endpoint has one NIC in each.
        rails: number of rails, equal to a host's number of ranks.
        blocks: groups of hosts. Leaf b x rails + r of a plane has rank r of every host of block b.
        hosts_per_leaf: hosts of a block.
        spines_per_rail: spines of each rail, each linked once to every leaf of it; 0 is valid with a single block.
        links: rates, delay and queues (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    blocks = require_range("blocks", blocks, 1, MAX_PORTS)
    several = "several blocks need a spine between the leaves of a rail" if blocks > 1 else ""
    planes = require_range("planes", planes, 1, addressing.MAX_PLANES)
    rails = require_range("rails", rails, 2, 64)
    hosts_per_leaf = require_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_PORTS)
    spines_per_rail = require_range("spines_per_rail", spines_per_rail, int(blocks > 1), MAX_PORTS, several)
    of_planes = PlaneLinks.checked(**links)
    if blocks * hosts_per_leaf < 2:
        raise TopologyError("a rail of one host leads nowhere", valid="at least 2 hosts")
    require_links(
        planes * rails * blocks * (hosts_per_leaf + spines_per_rail),
        f"planes={planes} of blocks={blocks} with rails={rails}, "
        f"hosts_per_leaf={hosts_per_leaf} and spines_per_rail={spines_per_rail}",
    )
    builder = FabricBuilder()
    leaves_of = [
        [
            builder.add_switch(plane, "leaf", coordinates=(rail, block), group=rail)
            for block in range(blocks)
            for rail in range(rails)
        ]
        for plane in range(planes)
    ]
    builder.add_hosts(leaves_of, hosts_per_leaf, of_planes.host_link)
    for plane, leaves in enumerate(leaves_of):
        for rail in range(rails):
            for number in range(spines_per_rail):
                spine = builder.add_switch(plane, "spine", coordinates=(rail, number), group=rail)
                for leaf in leaves[rail::rails]:
                    builder.add_link(leaf, spine, of_planes.fabric_link)
    return builder.build(
        {
            "kind": NAME,
            "planes": planes,
            "rails": rails,
            "blocks": blocks,
            "hosts_per_leaf": hosts_per_leaf,
            "spines_per_rail": spines_per_rail,
            **asdict(of_planes),
        }
    )


KIND = TopologyKind(NAME, RailOnlySection, rail_only, implied_by=("spines_per_rail",))
