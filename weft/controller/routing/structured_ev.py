"""Structured EVs: bits of the UDP source port choose each tier's port on the way up, by a table, without a hash.

The source port is divided into fields from its highest bit on: one for the plane, one for each tier of switches, as
wide as the tier's largest set of equal next hops needs. A switch reads the field of its tier. On the way down there is
one next hop. Nothing changes after a failure: senders leave a dead path themselves (MRC).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import finsy

from weft.controller.entities import Entity, default_action, entry
from weft.controller.routing.ev_paths import EvOfPath, EvRoute, EvRoutesKind
from weft.controller.routing.kind import RoutingKind
from weft.controller.routing.shortest_paths import KIND as SHORTEST_PATHS
from weft.controller.routing.single_paths import EV_PORTS
from weft.controller.routing.static_paths import StaticPaths
from weft.topologies import FabricSpec, Path, SwitchSpec
from weft.topologies.distances import distances_from_any
from weft.topologies.paths import ports_towards

EV_BITS = 16
"""Bits of the UDP source port, the upper half of an EV. The lower half, in IPv6's flow label, is 0."""


@dataclass(frozen=True)
class Fields:
    """How the source port is divided: tier of each switch, and width of each field, the plane's first."""

    tiers: Mapping[str, int]
    plane_bits: int
    tier_bits: tuple[int, ...]

    @property
    def bits(self) -> int:
        """Bits of all fields."""
        return self.plane_bits + sum(self.tier_bits)

    def shift(self, tier: int) -> int:
        """Return how many bits follow a tier's field."""
        return EV_BITS - self.plane_bits - sum(self.tier_bits[: tier + 1])


def fields_of(fabric: FabricSpec) -> Fields:
    """Return the fields of a fabric's EVs; its topology has tiers."""
    tiers: dict[str, int] = {}
    widths: dict[int, int] = {}
    for plane in range(fabric.planes):
        peers = {
            switch.name: [port.peer.node for port in switch.fabric_ports] for switch in fabric.switches_of_plane(plane)
        }
        edges = [switch.name for switch in fabric.edge_switches(plane)]
        of_plane = distances_from_any(edges, peers.__getitem__)
        tiers |= of_plane
        for name, tier in of_plane.items():
            upwards = sum(of_plane[peer] > tier for peer in peers[name])
            widths[tier] = max(widths.get(tier, 0), max(0, upwards - 1).bit_length())
    return Fields(tiers, (fabric.planes - 1).bit_length(), tuple(widths[tier] for tier in sorted(widths)))


class StructuredEv(StaticPaths):
    """The routes of a plane: groups of next hops as tables by field."""

    @cached_property
    def _fields(self) -> Fields:
        return fields_of(self._fabric)

    def _without_groups(self, switch: SwitchSpec, routes: tuple[Entity, ...]) -> tuple[Entity, ...]:
        fields = self._fields
        tier = fields.tiers[switch.name]
        bits = fields.tier_bits[tier]
        own = default_action("ev_field_of_switch", "set_ev_field", shift=fields.shift(tier), mask=(1 << bits) - 1)
        prefixes = [each for each in routes if isinstance(each, finsy.P4TableEntry) and each.table_id != "ecmp"]
        return (own, *prefixes, *_by_field(routes, 1 << bits))


def _by_field(routes: tuple[Entity, ...], values: int) -> Iterator[Entity]:
    """Yield a group's entries for every value of the field; beyond the group's members they begin anew."""
    actions = {each.member_id: each.action for each in routes if isinstance(each, finsy.P4ActionProfileMember)}
    for group in routes:
        if not isinstance(group, finsy.P4ActionProfileGroup):
            continue
        members = sorted(member.member_id for member in group.members or ())
        for value in range(values):
            action = actions[members[value % len(members)]]
            assert action is not None, "a member of a group has an action"
            yield entry(EV_PORTS, {"group": group.group_id, "field": value}, action.name, **action.args)


def _routes(fabric: FabricSpec) -> EvOfPath:
    fields = fields_of(fabric)

    def of_path(path: Path, _number: int) -> EvRoute:
        port = path.plane << EV_BITS - fields.plane_bits
        last = path.nodes[-2]
        for name, hop in zip(path.nodes[1:-2], path.hops[1:-1], strict=True):
            choices = [each.number for each in ports_towards(fabric, name, last)]
            if len(choices) > 1:
                port |= choices.index(hop.port) << fields.shift(fields.tiers[name])
        return port << 16, ""

    return of_path


def _objection(fabric: FabricSpec) -> str:
    if fabric.circuits is not None:
        return "circuits change the links that paths name"
    if not SHORTEST_PATHS.is_deadlock_free(fabric):
        return "it has no tiers in which packets go up, then down"
    if len({link.link.rate_bps for link in fabric.links_between_switches}) > 1:
        return "its links between switches have several rates, and a field weighs none"
    if (bits := fields_of(fabric).bits) > EV_BITS:
        return f"planes and tiers need {bits} bits (valid: at most {EV_BITS}, those of the UDP source port)"
    return ""


KIND = RoutingKind(
    name="structured_ev",
    summary="static tables by fields of the UDP source port: hosts name each packet's path",
    tables=("ipv4_lpm", "ipv6_lpm", "ev_field_of_switch", EV_PORTS),
    plane=StructuredEv,
    objection=_objection,
    is_deadlock_free=SHORTEST_PATHS.is_deadlock_free,
    macro="STRUCTURED_EV",
    ev_routes=EvRoutesKind(encapsulates=False, routes=_routes),
)
