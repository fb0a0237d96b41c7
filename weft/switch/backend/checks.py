"""Checks of requests against a program, made by every backend. They raise a `BackendError`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from weft.switch.backend import (
    ActionCall,
    CapacityExceededError,
    CloneSession,
    ExactMatch,
    GroupMember,
    GroupRef,
    InvalidRequestError,
    LpmMatch,
    Match,
    MemberRef,
    NotPermittedError,
    NotReadyError,
    RangeMatch,
    Replica,
    TableAction,
    TableKey,
    TernaryMatch,
)
from weft.switch.bmv2json import Action, KeyField, MatchKind, Program, Table, TableType

ObjectT = TypeVar("ObjectT")
MAX_STATE_BYTES = 4 << 30
"""Most bytes of a program's arrays together."""
MAX_ID = 0xFFFFFFFF
MAX_WEIGHT = 0xFFFF
MAX_PORT = 511
MAX_MULTICAST_GROUP = 0xFFFF
MAX_INSTANCE = 0xFFFF
MAX_CLONE_SESSION = 0x7FFF
MAX_CHOICES_SHOWN = 12
MATCH_TYPES: dict[MatchKind, type[Match]] = {
    MatchKind.VALID: ExactMatch,
    MatchKind.EXACT: ExactMatch,
    MatchKind.LPM: LpmMatch,
    MatchKind.TERNARY: TernaryMatch,
    MatchKind.RANGE: RangeMatch,
}


def check_capacity(program: Program) -> None:
    """Raise CapacityExceededError if the program's arrays need more memory than a switch has for them."""
    sizes_bytes = program.array_bytes
    total = sum(sizes_bytes.values())
    if total > MAX_STATE_BYTES:
        largest = max(sizes_bytes, key=sizes_bytes.__getitem__)
        raise CapacityExceededError(
            f"its registers, counters and meters take {total} bytes, {largest} alone {sizes_bytes[largest]}"
            f" (at most {MAX_STATE_BYTES})"
        )


def loaded(program: Program | None) -> Program:
    """Return the program. Raises NotReadyError without one."""
    if program is None:
        raise NotReadyError("no program is loaded")
    return program


def named(objects: Mapping[str, ObjectT], name: str, what: str) -> ObjectT:
    """Return the object called `name`; the error lists the valid names."""
    if name not in objects:
        shown = sorted(objects)[:MAX_CHOICES_SHOWN]
        if len(objects) > len(shown):
            shown.append("…")
        raise InvalidRequestError(f"unknown {what} {name!r}", valid=map(repr, shown))
    return objects[name]


def check_index(what: str, name: str, index: int, size: int) -> None:
    """Check that the index lies in the array."""
    if not 0 <= index < size:
        raise InvalidRequestError(f"{what} {name!r}: index {index} is out of range", valid=f"0 to {size - 1}")


def check_value(what: str, value: int, width_bits: int) -> None:
    """Check that the value is not negative and fits the width."""
    if not 0 <= value < 1 << width_bits:
        raise InvalidRequestError(f"value {value:#x} does not fit {width_bits} bits", place=what)


def check_range(what: str, value: int, low: int, high: int) -> None:
    """Check that the value lies between `low` and `high`, both included."""
    if not low <= value <= high:
        raise InvalidRequestError(f"{what} {value} is out of range", valid=f"{low} to {high}")


def check_multicast_group(group_id: int, replicas: Iterable[Replica]) -> None:
    """Check that a group's id and its replicas' ports and instances fit their fields."""
    check_range("multicast group", group_id, 1, MAX_MULTICAST_GROUP)
    _check_replicas(replicas)


def check_clone_session(session_id: int, session: CloneSession) -> None:
    """Check that a session's id, length and replicas fit their fields."""
    check_range("clone session", session_id, 0, MAX_CLONE_SESSION)
    check_range("packet length in bytes", session.packet_length_bytes, 0, MAX_ID)
    _check_replicas(session.replicas)


def _check_replicas(replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        check_range("replica port", replica.port, 0, MAX_PORT)
        check_range("replica instance", replica.instance, 0, MAX_INSTANCE)
        _check_replicas(replica.backups)


def check_group(group_id: int, members: Iterable[GroupMember]) -> None:
    """Check that ids, weights and watched ports fit their fields, but not that the members exist."""
    check_range("group", group_id, 0, MAX_ID)
    for member in members:
        check_range("member", member.member_id, 0, MAX_ID)
        check_range(f"weight of member {member.member_id}:", member.weight, 1, MAX_WEIGHT)
        if member.watch_port is not None:
            check_range(f"watch port of member {member.member_id}:", member.watch_port, 0, MAX_PORT)


def check_modifiable(table: Table, modifiable: bool) -> None:
    """Check that a table's entries may change. Raises NotPermittedError otherwise."""
    if not modifiable:
        raise NotPermittedError(f"table {table.name!r}: the program's entries are constant")


def check_key(table: Table, key: TableKey, priority: int) -> None:
    """Check that each key field has a match of the right kind, without bits that do not count.

    The priority is checked, too.
    """
    if len(key) != len(table.key):
        raise InvalidRequestError(f"table {table.name!r}: expected {len(table.key)} matches, got {len(key)}")
    for field, match in zip(table.key, key, strict=True):
        _check_match(f"table {table.name!r}, key field {field.name!r}", field, match)
    if table.needs_priority and priority <= 0:
        raise InvalidRequestError(f"table {table.name!r}: priority {priority} is not positive")


def _check_match(what: str, field: KeyField, match: Match) -> None:
    expected = MATCH_TYPES[field.kind]
    if not isinstance(match, expected):
        raise InvalidRequestError(f"expected {expected.__name__}, got {type(match).__name__}", place=what)
    width_bits = field.field.width_bits
    if isinstance(match, RangeMatch):
        check_value(what, match.low, width_bits)
        check_value(what, match.high, width_bits)
        if match.low > match.high:
            raise InvalidRequestError(f"range starts at {match.low:#x}, above its end {match.high:#x}", place=what)
        return
    check_value(what, match.value, width_bits)
    mask = (1 << width_bits) - 1
    if isinstance(match, TernaryMatch):
        check_value(what, match.mask, width_bits)
        mask = match.mask
    elif isinstance(match, LpmMatch):
        if not 0 <= match.prefix_length <= width_bits:
            raise InvalidRequestError(
                f"prefix length {match.prefix_length} is out of range", place=what, valid=f"0 to {width_bits}"
            )
        mask = mask >> width_bits - match.prefix_length << width_bits - match.prefix_length
    if match.value & ~mask:
        raise InvalidRequestError(f"value {match.value:#x} has bits set that do not count", place=what)


def check_call(what: str, actions: Iterable[Action], call: ActionCall) -> Action:
    """Return the action called, after checking that it is among `actions` and its arguments fit."""
    action = named({each.name: each for each in actions}, call.action, f"action of {what}")
    if len(call.arguments) != len(action.parameters):
        raise InvalidRequestError(
            f"{what}, action {action.name!r}: expected {len(action.parameters)} arguments, got {len(call.arguments)}"
        )
    for parameter, value in zip(action.parameters, call.arguments, strict=True):
        check_value(f"{what}, action {action.name!r}, parameter {parameter.name!r}", value, parameter.width_bits)
    return action


def check_table_action(table: Table, action: TableAction) -> None:
    """Check that the table's type accepts this kind of action.

    It does not check that a member or group exists.
    """
    what = f"table {table.name!r}"
    if isinstance(action, ActionCall):
        if table.type is not TableType.SIMPLE:
            raise InvalidRequestError(f"its entries refer to action profile {table.action_profile!r}", place=what)
        check_call(what, table.actions, action)
    elif table.type is TableType.SIMPLE:
        raise InvalidRequestError("it has no action profile, so its entries call an action", place=what)
    elif isinstance(action, GroupRef) and table.type is not TableType.INDIRECT_WITH_SELECTOR:
        raise InvalidRequestError("its action profile has no selector, so it has no groups", place=what)
    elif not isinstance(action, MemberRef | GroupRef):
        raise InvalidRequestError(f"expected an action, got {action!r}", place=what)


def profile_actions(program: Program, profile: str) -> list[Action]:
    """Return the actions that members of a profile may call, from all tables that use it."""
    return list(program.actions_of_profiles.get(profile, {}).values())
