"""Dragonfly+: groups of leaves and spines; links between spines join every two groups.

A. Shpiner et al., Dragonfly+: Low Cost Topology for Scaling Datacenters, HiPINEB 2017; also known as Megafly.
"""

from __future__ import annotations

from itertools import chain, product
from typing import Annotated, Final, Literal, Unpack

from weft.quantities.definitions import whole
from weft.topologies.addressing import MAX_PLANES, MAX_PORTS
from weft.topologies.builder import FabricBuilder, require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.global_links import Arrangement, global_links
from weft.topologies.kinds.base import TopologyKind
from weft.topologies.kinds.dragonfly import GroupsSection, checked_global_links
from weft.topologies.limits import LinkArguments, PlaneLinks
from weft.topologies.places import group_clusters, two_row_group_places

NAME: Final = "dragonfly_plus"


class DragonflyPlusSection(GroupsSection):
    """A dragonfly+: `hosts_per_leaf` hosts a leaf, `leaves` and `spines` a group, `global_links` a spine."""

    kind: Literal["dragonfly_plus"] = NAME
    """A dragonfly+; balanced with leaves = spines = hosts_per_leaf = global_links."""
    groups: Annotated[int, whole(2, 2**20, example="4")] = 5
    """Groups, at most spines x global_links + 1."""
    leaves: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Leaves of each group; each is linked to all spines of the group."""
    spines: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Spines of each group."""
    global_links: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Links of each spine to other groups."""

    @property
    def leaf_count(self) -> int:
        """Leaves of a plane."""
        return self.groups * self.leaves

    def check(self) -> None:
        """Check that the global links join all groups, and the shared keys."""
        self.check_groups(self.groups, self.spines, self.global_links)
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return dragonfly_plus(
            groups=self.groups,
            leaves_per_group=self.leaves,
            spines_per_group=self.spines,
            global_links_per_spine=self.global_links,
            arrangement=self.arrangement,
            hosts_per_leaf=self.endpoints_per_leaf,
            global_rate_bps=self.global_rate,
            global_delay_ps=self.global_delay,
            **self.network_arguments(self.fabric_rate),
        )


def dragonfly_plus(
    planes: int = 1,
    groups: int = 5,
    leaves_per_group: int = 2,
    spines_per_group: int = 2,
    global_links_per_spine: int = 2,
    arrangement: Arrangement = "absolute",
    hosts_per_leaf: int = 2,
    global_rate_bps: float | None = None,
    global_delay_ps: int | None = None,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` dragonfly+ networks that share their hosts.

    With fewer groups than a group's global links reach, every two groups get several links, equally many.

    Args:
        planes: independent planes; a host has one NIC in each.
        groups: groups, at most spines_per_group x global_links_per_spine + 1.
        leaves_per_group: leaves of a group, each linked to all its spines.
        spines_per_group: spines of a group.
        global_links_per_spine: links of a spine to spines of other groups.
        arrangement: see `weft.topologies.global_links`.
        hosts_per_leaf: hosts on each leaf.
        global_rate_bps: rate of the links between groups; by default of those within groups.
        global_delay_ps: propagation delay of the links between groups; by default of the others.
        links: rates, delay and queues of the links to hosts and within groups (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    leaves = require_range("leaves_per_group", leaves_per_group, 1, MAX_PORTS, "each is at a port of every spine")
    spines = require_range("spines_per_group", spines_per_group, 1, MAX_PORTS)
    ports = require_range("global_links_per_spine", global_links_per_spine, 1, MAX_PORTS)
    planes = require_range("planes", planes, 1, MAX_PLANES)
    groups = require_range("groups", groups, 2, spines * ports + 1, "as many as a group's global links reach")
    hosts = require_range("hosts_per_leaf", hosts_per_leaf, 1, MAX_PORTS)
    within = PlaneLinks.checked(**links)
    between = checked_global_links(within, global_rate_bps, global_delay_ps)
    for what, taken, of in (
        ("leaf", hosts + spines, f"{hosts} hosts and {spines} spines"),
        ("spine", leaves + ports, f"{leaves} leaves and {ports} global links"),
    ):
        if taken > MAX_PORTS:
            raise TopologyError(f"a {what} would have {taken} ports: {of}", valid=f"at most {MAX_PORTS}")
    require_links(planes * groups * (leaves * (hosts + spines) + spines * ports // 2), f"groups={groups}")
    builder = FabricBuilder()
    leaves_of, spines_of = (
        [
            [
                [builder.add_switch(plane, role, coordinates=(group, number), group=group) for number in range(count)]
                for group in range(groups)
            ]
            for plane in range(planes)
        ]
        for role, count in (("leaf", leaves), ("spine", spines))
    )
    builder.add_hosts([list(chain.from_iterable(of_plane)) for of_plane in leaves_of], hosts, within.host_link)
    global_link = within.link(between["global_rate_bps"], between["global_delay_ps"])
    for leaves_by_group, spines_by_group in zip(leaves_of, spines_of, strict=True):
        for own_leaves, own_spines in zip(leaves_by_group, spines_by_group, strict=True):
            for leaf, spine in product(own_leaves, own_spines):
                builder.add_link(leaf, spine, within.fabric_link)
        for each in global_links(groups, spines * ports, arrangement):
            builder.add_link(
                spines_by_group[each.group][each.port // ports],
                spines_by_group[each.other_group][each.other_port // ports],
                global_link,
            )
    # Rates and delays are resolved, so that equal fabrics have equal parameters.
    return builder.build(
        {
            "kind": NAME,
            "planes": planes,
            "groups": groups,
            "leaves_per_group": leaves,
            "spines_per_group": spines,
            "global_links_per_spine": ports,
            "arrangement": arrangement,
            "hosts_per_leaf": hosts,
            "host_rate_bps": within.host_rate_bps,
            "fabric_rate_bps": within.fabric_rate_bps,
            "global_rate_bps": between["global_rate_bps"],
            "delay_ps": within.delay_ps,
            "global_delay_ps": between["global_delay_ps"],
            "queue_capacity_bytes": within.queue_capacity_bytes,
        }
    )


KIND = TopologyKind(NAME, DragonflyPlusSection, dragonfly_plus, places=two_row_group_places, clusters=group_clusters)
