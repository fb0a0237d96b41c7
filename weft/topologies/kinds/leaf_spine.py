"""Leaf/spine fabrics: every plane is a separate two-tier Clos; every host has a NIC in each."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final, Literal

from weft.quantities.definitions import Rate, number, whole
from weft.topologies import addressing
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.kinds.base import TopologyKeyError, TopologyKind, TopologySection
from weft.topologies.limits import PlaneLinks, rate, uplink_rate

NAME: Final = "leaf_spine"


class LeafSpineSection(TopologySection):
    """A leaf/spine fabric with several planes."""

    kind: Literal["leaf_spine"] = NAME
    """Two tiers; the default, unless a key implies another kind."""
    leaves: Annotated[int, whole(1, MAX_PORTS)] = 4
    """Leaves of each plane."""
    spines: Annotated[int, whole(0, MAX_PORTS)] = 2
    """Spines of each plane; a single leaf needs none."""
    fabric_rate: Rate | None = None
    """Rate of the links between leaves and spines; by default `host_rate`."""
    oversubscription: Annotated[float, number(0.001, 1000, example="2")] | None = None
    """Ratio of a leaf's host bandwidth to its uplink bandwidth, instead of `fabric_rate`."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.leaves

    def check(self) -> None:
        """Check that spines join the leaves, and the shared keys."""
        if self.leaves > 1 and self.spines == 0:
            raise TopologyKeyError("spines", f"0 cannot join {self.leaves} leaves; at least 1 is needed")
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return leaf_spine(
            leaves=self.leaves,
            spines=self.spines,
            hosts_per_leaf=self.endpoints_per_leaf,
            oversubscription=self.oversubscription,
            **self.network_arguments(self.fabric_rate),
        )


def leaf_spine(
    planes: int = 2,
    leaves: int = 4,
    spines: int = 2,
    hosts_per_leaf: int = 2,
    host_rate_bps: float = 10e9,
    fabric_rate_bps: float | None = None,
    oversubscription: float | None = None,
    delay_ps: int = 1_000_000,
    queue_capacity_bytes: int | None = None,
) -> FabricSpec:
    """Describe `planes` leaf/spine planes that share their hosts.

    Args:
        planes: independent planes; a host has one NIC in each.
        leaves: leaves per plane; leaf l of every plane has the same hosts.
        spines: spines per plane, each linked once to every leaf; 0 is valid with a single leaf.
        hosts_per_leaf: hosts on each leaf; the fabric has leaves x hosts_per_leaf of them.
        host_rate_bps: rate of the links between hosts and leaves.
        fabric_rate_bps: rate of the links between leaves and spines; the hosts' rate by default.
        oversubscription: instead of `fabric_rate_bps`: a leaf's host bandwidth over its uplink bandwidth.
        delay_ps: propagation delay of every link.
        queue_capacity_bytes: queue of every transmitting port; by default by its rate (`weft.topologies.port_memory`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    planes = require_range("planes", planes, 1, addressing.MAX_PLANES)
    leaves = require_range("leaves", leaves, 1, MAX_PORTS, "each is at a port of every spine")
    several = "several leaves need a spine between them" if leaves > 1 else ""
    spines = require_range("spines", spines, 1 if leaves > 1 else 0, MAX_PORTS, several)
    hosts_per_leaf = require_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_PORTS)
    host_rate = rate("host_rate_bps", host_rate_bps)
    fabric_rate = uplink_rate("fabric_rate_bps", fabric_rate_bps, oversubscription, host_rate, hosts_per_leaf, spines)
    links = PlaneLinks.checked(host_rate, fabric_rate, delay_ps, queue_capacity_bytes)
    require_links(
        planes * leaves * (hosts_per_leaf + spines),
        f"planes={planes} of leaves={leaves} with hosts_per_leaf={hosts_per_leaf} and spines={spines}",
    )
    builder = FabricBuilder()
    leaves_of, spines_of = (
        [[builder.add_switch(plane, role) for _ in range(count)] for plane in range(planes)]
        for role, count in (("leaf", leaves), ("spine", spines))
    )
    builder.add_hosts(leaves_of, hosts_per_leaf, links.host_link)
    for of_plane, above in zip(leaves_of, spines_of, strict=True):
        for leaf in of_plane:
            for spine in above:
                builder.add_link(leaf, spine, links.fabric_link)
    # Rates are resolved, so that equal fabrics have equal parameters.
    return builder.build(
        {
            "kind": NAME,
            "planes": planes,
            "leaves": leaves,
            "spines": spines,
            "hosts_per_leaf": hosts_per_leaf,
            **asdict(links),
        }
    )


KIND = TopologyKind(NAME, LeafSpineSection, leaf_spine, is_up_down=True)
