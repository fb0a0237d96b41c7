"""Parts of routes (prefixes, next hops, selector groups) and their P4Runtime entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from math import gcd
from typing import TypeVar

import finsy

from weft.controller.entities import Entity, entry, group_entry, mac_number
from weft.topologies import SwitchSpec
from weft.topologies.distances import bits_of

SELECTOR = "ecmp_selector"
MOST_WEIGHT = 64
"""Largest total weight of a group's members, unless the group has more members."""
Prefix = IPv4Network | IPv6Network
_Way = TypeVar("_Way")


@dataclass(frozen=True, order=True)
class NextHop:
    """A next hop: output port, MACs of the rewritten frame, and rate of the link."""

    port: int
    source_mac: str
    destination_mac: str
    rate_bps: int


NextHops = tuple[NextHop, ...]


@dataclass(frozen=True)
class Route:
    """A prefix and its next hops, in order of their ports; several mean ECMP."""

    prefix: Prefix
    next_hops: NextHops


@dataclass(frozen=True)
class Destinations:
    """Destinations of one or more entries: their prefixes, and their switches as bits by place in the plane."""

    entries: tuple[LpmEntries, ...]
    switches: int


@dataclass(frozen=True)
class SwitchRoutes:
    """Routes of one switch.

    Attributes:
        hosts: routes to its own hosts over live links.
        towards: for each set of next hops, the switches reached over them, as bits by place in the plane.
        elsewhere: the same routes as prefixes, each with its next hops.

    """

    hosts: tuple[Route, ...]
    towards: dict[NextHops, int]
    elsewhere: Sequence[tuple[Destinations, NextHops]]

    def __iter__(self) -> Iterator[Route]:
        """Iterate over all routes."""
        yield from self.hosts
        for destinations, next_hops in self.elsewhere:
            yield from (Route(each.prefix, next_hops) for each in destinations.entries)

    def groups(self) -> dict[NextHops, int]:
        """Return group ids, from 1, for all sets of several next hops; the largest sets come first."""
        sets = [next_hops for next_hops in self.towards if len(next_hops) > 1]
        # The largest sets keep their numbers when a failure adds smaller ones, so fewer entries change.
        ordered = sorted(sets, key=lambda hops: (-len(hops), hops))
        return {hops: group_id for group_id, hops in enumerate(ordered, start=1)}

    def entities(self, switch: SwitchSpec) -> tuple[Entity, ...]:
        """Return a switch's entities for these routes."""
        groups = self.groups()
        entities = _selector_entities(switch, groups)
        entities += [LpmEntries(route.prefix).next_hop(route.next_hops[0]) for route in self.hosts]
        for destinations, next_hops in self.elsewhere:
            group_id = groups.get(next_hops)
            if group_id is None:
                entities += [lpm.next_hop(next_hops[0]) for lpm in destinations.entries]
            else:
                entities += [lpm.group(group_id) for lpm in destinations.entries]
        return tuple(entities)


def one_by_one(towards: Mapping[_Way, int], behind: Sequence[Destinations]) -> list[tuple[Destinations, _Way]]:
    """Return each switch's prefixes with the next hops towards it; `behind` has the prefixes by place in the plane."""
    return [(behind[place], way) for way, switches in towards.items() for place in bits_of(switches)]


class LpmEntries:
    """Entries of a prefix; switches that send it to a group with the same number share one object."""

    __slots__ = ("_groups", "_match", "_table", "prefix")

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        self._table = "ipv4_lpm" if prefix.version == 4 else "ipv6_lpm"
        self._match = {"destination": str(prefix)}
        self._groups: dict[int, Entity] = {}

    def group(self, group_id: int) -> Entity:
        """Return the entry that sends the prefix to a group."""
        found = self._groups.get(group_id)
        if found is None:
            found = self._groups[group_id] = entry(self._table, self._match, "set_ecmp_group", group=group_id)
        return found

    def next_hop(self, hop: NextHop) -> Entity:
        """Return the entry that sends the prefix to one next hop."""
        return entry(
            self._table,
            self._match,
            "set_next_hop",
            port=hop.port,
            source_mac=mac_number(hop.source_mac),
            destination_mac=mac_number(hop.destination_mac),
        )


def member_weights(rates_bps: Sequence[int]) -> list[int]:
    """Return the weights of a group's members, proportional to their links' rates, as the smallest integers.

    If their sum would exceed `MOST_WEIGHT`, they are rounded so that it is about `MOST_WEIGHT`.
    """
    divisor = gcd(*rates_bps)
    weights = [rate_bps // divisor for rate_bps in rates_bps]
    most = max(MOST_WEIGHT, len(weights))
    if sum(weights) > most:
        # A weight of 0 would leave a slow link unused.
        weights = [max(1, round(rate_bps * most / sum(rates_bps))) for rate_bps in rates_bps]
    return weights


def without_watched_ports(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return the entities with groups that do not watch ports, for targets that cannot."""
    return tuple(
        replace(each, members=[_unwatched(member) for member in each.members])
        if isinstance(each, finsy.P4ActionProfileGroup) and each.members
        else each
        for each in entities
    )


def _unwatched(member: finsy.P4Member) -> finsy.P4Member:
    weight = member.weight
    return finsy.P4Member(member.member_id, weight=weight if isinstance(weight, int) else weight[0])


def _selector_entities(switch: SwitchSpec, groups: dict[NextHops, int]) -> list[Entity]:
    """Return selector members and groups, and the entries of `ecmp`."""
    members = sorted({hop for hops in groups for hop in hops})
    entities: list[Entity] = [
        finsy.P4ActionProfileMember(
            SELECTOR,
            # Ports identify members, so a member has the same number in every group, before and after a failure.
            member_id=hop.port,
            action=finsy.P4TableAction(
                "set_next_hop",
                port=hop.port,
                source_mac=mac_number(hop.source_mac),
                destination_mac=mac_number(hop.destination_mac),
            ),
        )
        for hop in members
    ]
    # The size does not depend on failures, because a group keeps its size.
    # Dark ports count as well: a group keeps its size when circuits change.
    ports = [port for port in switch.ports if not port.peer_is_host]
    rates = {port.link.rate_bps for port in ports}
    largest = len(ports) if len(rates) < 2 else MOST_WEIGHT + len(ports)
    for hops, group_id in groups.items():
        weights = member_weights([hop.rate_bps for hop in hops])
        members_of_group = tuple((hop.port, weight) for hop, weight in zip(hops, weights, strict=True))
        entities += _group(group_id, largest, members_of_group)
    return entities


@lru_cache(maxsize=1 << 12)
def _group(group_id: int, max_size: int, members: tuple[tuple[int, int], ...]) -> tuple[Entity, Entity]:
    """Return a group of members, each a port and a weight, and its entry of `ecmp`; switches share equal ones."""
    group = finsy.P4ActionProfileGroup(
        SELECTOR,
        group_id=group_id,
        max_size=max_size,
        # The switch skips a member as soon as its port loses its link, before the controller is notified.
        members=[finsy.P4Member(port, weight=(weight, port)) for port, weight in members],
    )
    return group, group_entry("ecmp", {"group": group_id}, group_id)
