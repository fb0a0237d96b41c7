"""Dragonflies: groups of fully connected routers; global links join every two groups (Kim et al., ISCA 2008)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Final, Literal, TypedDict, Unpack

from weft.quantities.definitions import Rate, ShortTime, whole
from weft.topologies.addressing import MAX_PORTS
from weft.topologies.builder import require_links
from weft.topologies.errors import TopologyError, require_range
from weft.topologies.fabric import FabricSpec
from weft.topologies.flat import FlatLink, FlatParameters, build_flat
from weft.topologies.global_links import Arrangement, global_links, objection_to_groups
from weft.topologies.kinds.base import FabricRateSection, TopologyKeyError, TopologyKind
from weft.topologies.limits import LinkArguments, PlaneLinks, delay, rate
from weft.topologies.places import group_clusters, group_places

NAME: Final = "dragonfly"


class GroupsSection(FabricRateSection):
    """A section with groups of switches, and global links between these."""

    fabric_rate: Rate | None = None
    """Rate of the links within groups; by default `host_rate`."""
    global_rate: Rate | None = None
    """Rate of the links between groups; by default `fabric_rate`."""
    global_delay: ShortTime | None = None
    """Propagation delay of the links between groups; by default `delay`."""
    arrangement: Arrangement = "absolute"
    """Which port of a group leads to which other group."""

    def check_groups(self, groups: int, switches: int, global_links: int) -> None:
        """Check that groups of so many switches with so many global links each reach each other."""
        if objection := objection_to_groups(groups, switches, global_links):
            raise TopologyKeyError("groups", objection)


class DragonflySection(GroupsSection):
    """A dragonfly: `hosts_per_leaf` hosts a router (p), `routers` a group (a), `global_links` a router (h)."""

    kind: Literal["dragonfly"] = NAME
    """A dragonfly; balanced with routers = 2 x hosts_per_leaf = 2 x global_links."""
    groups: Annotated[int, whole(2, 2**20)] = 9
    """Groups (g), at most routers x global_links + 1."""
    routers: Annotated[int, whole(1, MAX_PORTS)] = 4
    """Routers of each group (a); any two are linked."""
    global_links: Annotated[int, whole(1, MAX_PORTS)] = 2
    """Links of each router to other groups (h)."""

    @property
    def leaf_count(self) -> int:
        """Routers of a plane."""
        return self.groups * self.routers

    def check(self) -> None:
        """Check that the global links join all groups, and the shared keys."""
        self.check_groups(self.groups, self.routers, self.global_links)
        super().check()

    def network(self) -> FabricSpec:
        """Return the fabric without scale-up links."""
        return dragonfly(
            groups=self.groups,
            routers_per_group=self.routers,
            global_links_per_router=self.global_links,
            arrangement=self.arrangement,
            global_rate_bps=self.global_rate,
            global_delay_ps=self.global_delay,
            **self.flat_arguments(),
        )


def dragonfly(
    planes: int = 1,
    groups: int = 9,
    routers_per_group: int = 4,
    global_links_per_router: int = 2,
    arrangement: Arrangement = "absolute",
    hosts_per_switch: int = 2,
    global_rate_bps: float | None = None,
    global_delay_ps: int | None = None,
    **links: Unpack[LinkArguments],
) -> FabricSpec:
    """Describe `planes` dragonflies that share their hosts.

    With fewer groups than a group's global links reach, every two groups get several links, equally many.

    Args:
        planes: independent planes; a host has one NIC in each.
        groups: groups (g in the paper), at most routers_per_group x global_links_per_router + 1.
        routers_per_group: routers of a group (a), each linked to all others of it.
        global_links_per_router: links of a router to other groups (h).
        arrangement: see `weft.topologies.global_links`.
        hosts_per_switch: hosts on each router (p).
        global_rate_bps: rate of the links between groups; by default of those within groups.
        global_delay_ps: propagation delay of the links between groups; by default of the others.
        links: rates, delay and queues of the links to hosts and within groups (`weft.topologies.limits.LinkArguments`).

    Raises:
        TopologyError: a parameter is out of range; the message gives the valid range.

    """
    routers = require_range("routers_per_group", routers_per_group, 1, MAX_PORTS)
    ports = require_range("global_links_per_router", global_links_per_router, 1, MAX_PORTS)
    groups = require_range("groups", groups, 2, routers * ports + 1, "as many as a group's global links reach")
    parameters = FlatParameters.checked(planes, hosts_per_switch, **links)
    taken = parameters.hosts_per_switch + routers - 1 + ports
    if taken > MAX_PORTS:
        raise TopologyError(
            f"a router would have {taken} ports: {parameters.hosts_per_switch} hosts, {routers - 1} routers and "
            f"{ports} global links",
            valid=f"at most {MAX_PORTS}",
        )
    require_links(groups * routers * (routers - 1 + ports) // 2, f"groups={groups}")
    local = parameters.links.fabric_link
    of_groups = checked_global_links(parameters.links, global_rate_bps, global_delay_ps)
    between = parameters.links.link(of_groups["global_rate_bps"], of_groups["global_delay_ps"])

    def links_of_plane() -> Iterator[FlatLink]:
        for group in range(groups):
            for a, b in combinations(range(routers), 2):
                yield FlatLink((group, a), (group, b), local)
        for each in global_links(groups, routers * ports, arrangement):
            yield FlatLink((each.group, each.port // ports), (each.other_group, each.other_port // ports), between)

    return build_flat(
        "router",
        parameters,
        [(group, router) for group in range(groups) for router in range(routers)],
        links_of_plane,
        {
            "kind": NAME,
            "groups": groups,
            "routers_per_group": routers,
            "global_links_per_router": ports,
            "arrangement": arrangement,
            **of_groups,
            **parameters.described,
        },
        grouped=True,
    )


class GlobalLinks(TypedDict):
    """Checked figures of the links between groups."""

    global_rate_bps: int
    global_delay_ps: int


def checked_global_links(within: PlaneLinks, global_rate_bps: float | None, global_delay_ps: int | None) -> GlobalLinks:
    """Return the figures of the links between groups, by default of those within groups.

    Raises:
        TopologyError: a figure is out of range.
    """
    return GlobalLinks(
        global_rate_bps=within.fabric_rate_bps if global_rate_bps is None else rate("global_rate_bps", global_rate_bps),
        global_delay_ps=within.delay_ps if global_delay_ps is None else delay(global_delay_ps, "global_delay_ps"),
    )


KIND = TopologyKind(
    NAME, DragonflySection, dragonfly, implied_by=("groups",), places=group_places, clusters=group_clusters
)
