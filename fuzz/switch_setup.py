"""What a control plane might set up on a switch that runs any program: entries, members, groups, meters, copies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeAlias

from weft.switch.backend import (
    ActionCall,
    CloneSession,
    ExactMatch,
    GroupMember,
    GroupRef,
    LpmMatch,
    Match,
    MemberRef,
    MeterConfig,
    RangeMatch,
    Replica,
    SwitchBackend,
    TableAction,
    TableEntry,
    TernaryMatch,
)
from weft.switch.backend.checks import profile_actions
from weft.switch.bmv2json import Action, KeyField, MatchKind, Program, Table, TableType

Step: TypeAlias = Callable[[SwitchBackend], None]
_MOST_ENTRIES = 4
_MEMBERS = (1, 2, 3)
_GROUPS = (1, 2)
_BURSTS_BYTES = (0, 60, 500)


def random_setup(
    rng: random.Random, program: Program, ports: int, sessions: tuple[int, ...], groups: tuple[int, ...]
) -> Iterator[Step]:
    """Requests that a switch accepts or, where two entries are the same, refuses.

    Meters have bursts but no rates, so that no clock matters. Copies leave by the ports below `ports`.
    """
    return chain(
        *(_profile_steps(rng, program, name) for name in program.action_profiles),
        *(_table_steps(rng, table) for table in program.tables.values()),
        *(_meter_steps(rng, meter.name, meter.size) for meter in program.meter_arrays.values() if not meter.table),
        (_session_step(rng, session, ports) for session in sessions),
        (_group_step(rng, group, ports) for group in groups),
    )  # fmt: skip


def _profile_steps(rng: random.Random, program: Program, profile: str) -> Iterator[Step]:
    actions = profile_actions(program, profile)
    for member in _MEMBERS:
        call = _call(rng, rng.choice(actions))
        yield lambda switch, m=member, c=call: switch.member_insert(profile, m, c)  # type: ignore[misc]
    if program.action_profiles[profile].selector_algorithm is None:
        return
    for group in _GROUPS:
        count = rng.randrange(len(_MEMBERS) + 1)
        members = [GroupMember(member, rng.randrange(1, 4)) for member in rng.sample(_MEMBERS, count)]
        yield lambda switch, g=group, m=members: switch.group_insert(profile, g, m)  # type: ignore[misc]


def _table_steps(rng: random.Random, table: Table) -> Iterator[Step]:
    if table.immutable or not table.key:
        return
    for _ in range(rng.randrange(_MOST_ENTRIES + 1)):
        key = tuple(_match(rng, field) for field in table.key)
        priority = rng.randrange(1, 100) if table.needs_priority else 0
        entry = TableEntry(key, _action(rng, table), priority)
        yield lambda switch, e=entry: switch.table_insert(table.name, e)  # type: ignore[misc]
    if table.type is TableType.SIMPLE and not (table.default_entry and table.default_entry.constant):
        call = _call(rng, rng.choice(table.actions))
        yield lambda switch: switch.table_set_default(table.name, call)


def _meter_steps(rng: random.Random, name: str, size: int) -> Iterator[Step]:
    for index in range(size):
        committed, peak = sorted(rng.choice(_BURSTS_BYTES) for _ in range(2))
        config = rng.choice((None, MeterConfig(0, committed, 0, peak)))
        yield lambda switch, i=index, c=config: switch.meter_write(name, i, c)  # type: ignore[misc]


def _session_step(rng: random.Random, session: int, ports: int) -> Step:
    replicas = _replicas(rng, ports, most=2)
    made = CloneSession(replicas, rng.randrange(8), rng.choice((0, 0, 10, 40)))
    return lambda switch: switch.clone_session_set(session, made)


def _group_step(rng: random.Random, group: int, ports: int) -> Step:
    replicas = _replicas(rng, ports, most=3)
    return lambda switch: switch.multicast_group_set(group, replicas)


def _replicas(rng: random.Random, ports: int, most: int) -> tuple[Replica, ...]:
    return tuple(Replica(rng.randrange(ports), rng.randrange(5)) for _ in range(rng.randrange(1, most + 1)))


def _action(rng: random.Random, table: Table) -> TableAction:
    if table.type is TableType.SIMPLE:
        return _call(rng, rng.choice(table.actions))
    if table.type is TableType.INDIRECT_WITH_SELECTOR and rng.random() < 0.7:
        return GroupRef(rng.choice(_GROUPS))
    return MemberRef(rng.choice(_MEMBERS))


def _call(rng: random.Random, action: Action) -> ActionCall:
    return ActionCall(action.name, tuple(rng.getrandbits(parameter.width_bits) for parameter in action.parameters))


def _match(rng: random.Random, key: KeyField) -> Match:
    """A match on values that packets often have, such as small numbers, or on random bits."""
    width = key.field.width_bits
    value = rng.choice((0, 1, 2, (1 << width) - 1, rng.getrandbits(width))) & ((1 << width) - 1)
    match key.kind:
        case MatchKind.EXACT:
            return ExactMatch(value)
        case MatchKind.VALID:
            return ExactMatch(value & 1)
        case MatchKind.LPM:
            length = rng.choice((0, 1, width // 2, width))
            return LpmMatch(value >> width - length << width - length, length)
        case MatchKind.TERNARY:
            mask = rng.choice((0, 1, (1 << width) - 1, 1 << rng.randrange(width)))
            return TernaryMatch(value & mask, mask)
        case MatchKind.RANGE:
            return RangeMatch(*sorted((value, rng.getrandbits(width))))
