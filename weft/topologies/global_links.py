"""Arrangements of a dragonfly's global links: which global port of a group leads to which other group.

C. Camarero, E. Vallejo and R. Beivide name the arrangements (Topological Characterization of Hamming and Dragonfly
Networks, ACM TACO 2014); E. Hastings et al. compare them (Comparing Global Link Arrangements for Dragonfly Networks,
CLUSTER 2015). A group's global ports are numbered across all its routers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from weft.topologies.errors import TopologyError

Arrangement = Literal["absolute", "relative", "circulant"]
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)


@dataclass(frozen=True)
class GlobalLink:
    """A link between global ports of two groups."""

    group: int
    port: int
    other_group: int
    other_port: int


def global_links(groups: int, ports: int, arrangement: Arrangement) -> Iterator[GlobalLink]:
    """Yield the links between groups of `ports` global ports each, the lower group of each link first.

    Every two groups have ports // (groups - 1) links; remaining ports stay unused.

    Raises:
        TopologyError: a group has too few ports to reach all groups, or the arrangement is unknown.

    """
    if arrangement not in ARRANGEMENTS:
        raise TopologyError(f"arrangement={arrangement!r} is unknown", valid=ARRANGEMENTS)
    if not 2 <= groups <= ports + 1:
        raise TopologyError(
            f"groups={groups} is out of range", valid=f"2 to {ports + 1}, as a group has {ports} global links"
        )
    for trunk in range(ports // (groups - 1)):
        first = trunk * (groups - 1)
        for group in range(groups):
            for other in range(group + 1, groups):
                yield GlobalLink(
                    group,
                    first + _port_towards(group, other, groups, arrangement),
                    other,
                    first + _port_towards(other, group, groups, arrangement),
                )


def objection_to_groups(groups: int, switches: int, links: int) -> str:
    """Return why groups of `switches` with `links` global links each cannot all be joined; "" if they can."""
    most = switches * links + 1
    if groups <= most:
        return ""
    return f"{groups} cannot be joined by {switches} x {links} global links a group (valid: 2 to {most})"


def _port_towards(group: int, other: int, groups: int, arrangement: Arrangement) -> int:
    """Return which port of a group leads to another group, if it has one port for each other group."""
    distance = (other - group) % groups
    if arrangement == "absolute":
        return other if other < group else other - 1
    if arrangement == "relative":
        return distance - 1
    # Circulant: ports 0, 1, 2, 3, … lead to the groups at +1, -1, +2, -2, …
    return 2 * (distance - 1) if distance <= groups // 2 else 2 * (groups - distance) - 1
