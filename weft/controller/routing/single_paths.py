"""Routes of programs without ECMP: each prefix has one of the next hops that a group would have."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import finsy

from weft.controller.entities import Entity, entry
from weft.controller.program_names import ProgramNames

ECMP = "ecmp"
EV_PORTS = "ev_ports"
"""In place of `ecmp` where fields of EVs choose (structured_ev.py)."""
_LPM_TABLES = ("ipv4_lpm", "ipv6_lpm")


def takes_single_paths(program: ProgramNames) -> bool:
    """Return whether a program supports prefixes with one next hop, but not groups."""
    prefixes = [
        program.tables[name]
        for name in _LPM_TABLES
        if name in program.tables and "destination" in program.tables[name].fields
    ]
    chooses = any(table in program.tables for table in (ECMP, EV_PORTS))
    has_groups = chooses and all("set_ecmp_group" in each.actions for each in prefixes)
    return not has_groups and any("set_next_hop" in each.actions for each in prefixes)


def single_paths(switch: str, entities: Iterable[Entity], seed: int) -> tuple[Entity, ...]:
    """Return a switch's routes without groups, with one next hop from each group.

    A hash of seed, switch and prefix chooses it, so that prefixes are spread and switches choose differently.
    """
    routes = list(entities)
    actions = {each.member_id: each.action for each in routes if isinstance(each, finsy.P4ActionProfileMember)}
    groups = {
        each.group_id: sorted(member.member_id for member in each.members or ())
        for each in routes
        if isinstance(each, finsy.P4ActionProfileGroup)
    }
    return tuple(
        _with_next_hop(f"{seed} {switch}", each, groups, actions)
        for each in routes
        if isinstance(each, finsy.P4TableEntry) and each.table_id in _LPM_TABLES
    )


def _with_next_hop(
    chooser: str,
    route: finsy.P4TableEntry,
    groups: dict[int, list[int]],
    actions: dict[int, finsy.P4TableAction | None],
) -> finsy.P4TableEntry:
    if not isinstance(route.action, finsy.P4TableAction) or route.action.name != "set_ecmp_group":
        return route
    members = groups[route.action.args["group"]]
    match = dict(route.match or {})
    hashed = hashlib.blake2b(f"{chooser} {match['destination']}".encode(), digest_size=8).digest()
    place = int.from_bytes(hashed, "big") % len(members)
    action = actions[members[place]]
    assert action is not None, "a member of a group has an action"
    return entry(route.table_id, match, action.name, **action.args)
