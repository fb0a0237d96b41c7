"""What routes consist of, and the P4Runtime entities that they become: prefixes, next hops, groups of a selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from math import gcd
from typing import TypeVar

import finsy

from weft.controller.entities import Entity, entry, group_entry, mac_number
from weft.topologies import SwitchSpec
from weft.topologies.distances import bits_of

SELECTOR = "ecmp_selector"
MOST_WEIGHT = 64
"""Of the members of a group together, unless it has more members."""
Prefix = IPv4Network | IPv6Network
_Way = TypeVar("_Way")


@dataclass(frozen=True, order=True)
class NextHop:
    """Where a packet goes: out of `port` with these MACs, over a link of this rate."""

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
    """What one entry or some lead to: their prefixes, and the switches behind them, as bits by place in the plane."""

    entries: tuple[LpmEntries, ...]
    switches: int


@dataclass(frozen=True)
class SwitchRoutes:
    """Routes of one switch.

    Attributes:
        hosts: its own hosts', of live links.
        towards: switches of the plane that are reached over the same next hops, as bits by their place in the plane.
        elsewhere: the same as prefixes, each with its next hops.

    """

    hosts: tuple[Route, ...]
    towards: dict[NextHops, int]
    elsewhere: Sequence[tuple[Destinations, NextHops]]

    def __iter__(self) -> Iterator[Route]:
        """All routes."""
        yield from self.hosts
        for destinations, next_hops in self.elsewhere:
            yield from (Route(each.prefix, next_hops) for each in destinations.entries)

    def groups(self) -> dict[NextHops, int]:
        """Group ids, from 1, of all sets of several next hops; the largest sets first."""
        sets = [next_hops for next_hops in self.towards if len(next_hops) > 1]
        # The largest sets keep their numbers when a failure adds smaller ones, so fewer entries change.
        ordered = sorted(sets, key=lambda hops: (-len(hops), hops))
        return {hops: group_id for group_id, hops in enumerate(ordered, start=1)}

    def entities(self, switch: SwitchSpec) -> tuple[Entity, ...]:
        """Return the entities of a switch that has these routes."""
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


def one_by_one(
    towards: Mapping[_Way, int], behind: Sequence[Destinations]
) -> list[tuple[Destinations, _Way]]:
    """Return each switch's prefixes with the way towards it; `behind` has them by place in the plane."""
    return [(behind[place], way) for way, switches in towards.items() for place in bits_of(switches)]


class LpmEntries:
    """Entries of a prefix; there is one object for all switches that send it to a group of the same number."""

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
    """Return the weights of a group's members in proportion to their links' rates, the smallest whole numbers.

    Where these would be more than `MOST_WEIGHT` together, they are rounded so that they are about as many.
    """
    divisor = gcd(*rates_bps)
    weights = [rate_bps // divisor for rate_bps in rates_bps]
    most = max(MOST_WEIGHT, len(weights))
    if sum(weights) > most:
        # A weight of 0 would leave a slow link unused.
        weights = [max(1, round(rate_bps * most / sum(rates_bps))) for rate_bps in rates_bps]
    return weights


def without_watched_ports(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return entities whose groups leave out no member by themselves, for targets that cannot watch ports."""
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
    """Selector members and groups, and the `ecmp` table."""
    members = sorted({hop for hops in groups for hop in hops})
    entities: list[Entity] = [
        finsy.P4ActionProfileMember(
            SELECTOR,
            # Ports identify members: the same number for every group, before and after a failure.
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
    # The same for every failure, because a group keeps its size.
    # Those that are dark, too: a group's size stays as it is when circuits change.
    ports = [port for port in switch.ports if not port.peer_is_host]
    rates = {port.link.rate_bps for port in ports}
    largest = len(ports) if len(rates) < 2 else MOST_WEIGHT + len(ports)
    for hops, group_id in groups.items():
        weights = member_weights([hop.rate_bps for hop in hops])
        entities.append(
            finsy.P4ActionProfileGroup(
                SELECTOR,
                group_id=group_id,
                max_size=largest,
                # A member whose port has lost its link is skipped at once, before the controller is notified.
                members=[
                    finsy.P4Member(hop.port, weight=(weight, hop.port))
                    for hop, weight in zip(hops, weights, strict=True)
                ],
            )
        )
        entities.append(group_entry("ecmp", {"group": group_id}, group_id))
    return entities
