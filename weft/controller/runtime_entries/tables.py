"""Table entries in files: keys, actions, priorities, idle timeouts and meters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import finsy

from weft.controller.errors import SettingError
from weft.controller.plain_values import NEEDS_PRIORITY, count_of, match_value
from weft.controller.program_names import ProgramNames, TableNames
from weft.controller.runtime_entries.actions import action_set, named_action
from weft.controller.runtime_entries.cells import meter_config
from weft.controller.runtime_entries.fields import at, id_at, mapping, needed
from weft.controller.runtime_entries.profiles import ID_BITS
from weft.quantities.units import shown

_PRIORITY_BITS = 31
_TIMEOUT_BITS = 63
_OWN_ACTION = ("action_name", "action_params")
_OF_PROFILE = ("member_id", "group_id", "action_set")
_TABLE_KEYS = (
    "table",
    "match",
    *_OWN_ACTION,
    *_OF_PROFILE,
    "default_action",
    "priority",
    "idle_timeout_ns",
    "meter_config",
)


def table_entry(entry: Any, program: ProgramNames) -> finsy.P4TableEntry:
    """Return a table entry or a default entry. Raises SettingError."""
    entry = mapping(entry, _TABLE_KEYS, "an entry of a table")
    table = program.tables.named(needed(entry, "table"))
    is_default = entry.get("default_action", False)
    if not isinstance(is_default, bool):
        raise SettingError(f"{shown(is_default)}", place="default_action", valid="true, false")
    _require_not_constant(table, is_default)
    match = _match(entry.get("match"), table, is_default)
    action = _action(entry, table, is_default)
    timeout_ns = count_of(entry.get("idle_timeout_ns", 0), _TIMEOUT_BITS)
    if timeout_ns and not table.idle_timeout:
        raise SettingError(f"table {table.name} has no support_timeout = true", place="idle_timeout_ns")
    return finsy.P4TableEntry(
        table.name,
        match=finsy.P4TableMatch(match) if match else None,
        action=action,
        priority=_priority(entry.get("priority"), table, is_default),
        is_default_action=is_default,
        idle_timeout_ns=timeout_ns,
        meter_config=_meter(entry, table),
    )


def _require_not_constant(table: TableNames, is_default: bool) -> None:
    if is_default and table.info.const_default_action_id:
        raise SettingError(f"{table.name} has a const one", place="default_action")
    if not is_default and table.info.is_const_table:
        raise SettingError(f"table: the entries of {table.name} are const")


def _match(match: Any, table: TableNames, is_default: bool) -> dict[str, Any]:
    if match is None:
        match = {}
    if not isinstance(match, Mapping):
        raise SettingError(f"match: must be a mapping of keys to values, is {shown(match)}")
    if is_default and match:
        raise SettingError("match: a default entry matches what no other does: leave it out")
    values = {}
    for name, value in match.items():
        info = table.fields.named(name, table.name)
        values[info.name] = at(f"match.{name}", match_value, info, value)
    missing = [name for name, info in table.fields.items() if info.match_type == info.EXACT and name not in values]
    if missing and not is_default:
        raise SettingError(f"match: table {table.name} needs {', '.join(missing)}, which it matches exactly")
    return values


def _action(
    entry: Mapping[str, Any], table: TableNames, is_default: bool
) -> finsy.P4TableAction | finsy.P4IndirectAction:
    given = [key for key in (*_OWN_ACTION, *_OF_PROFILE) if entry.get(key) is not None]
    if is_default or not table.of_profile:
        # Default actions are direct, even in tables with an action profile (P4Runtime, section 9.1.2).
        other = [key for key in given if key in _OF_PROFILE]
        if other:
            why = "a default entry has none" if is_default else f"table {table.name} has no action profile"
            raise SettingError(f"{other[0]}: {why}", valid=_OWN_ACTION)
        return named_action(entry, table.default_actions if is_default else table.actions, table.name)
    if len(given) != 1 or given[0] not in _OF_PROFILE:
        raise SettingError(
            f"table {table.name} chooses by an action profile: give one of {', '.join(_OF_PROFILE)}"
            + (f", not {', '.join(given)}" if given else "")
        )
    if given[0] == "action_set":
        return finsy.P4IndirectAction(action_set(entry, table))
    number = id_at(entry, given[0], ID_BITS)
    if given[0] == "member_id":
        return finsy.P4IndirectAction(member_id=number)
    return finsy.P4IndirectAction(group_id=number)


def _priority(priority: Any, table: TableNames, is_default: bool) -> int:
    number = 0 if priority is None else at("priority", count_of, priority, _PRIORITY_BITS)
    wanted = not is_default and any(info.match_type in NEEDS_PRIORITY for info in table.fields.values())
    if wanted and not number:
        raise SettingError(f"priority: entries of {table.name} need one", valid="1 or more; the largest wins")
    if number and not wanted:
        raise SettingError(f"priority: entries of {table.name} have none: its keys are exact or prefixes")
    return int(number)


def _meter(entry: Mapping[str, Any], table: TableNames) -> finsy.P4MeterConfig | None:
    config = entry.get("meter_config")
    if config is None:
        return None
    if table.meter is None:
        raise SettingError(f"table {table.name} has no direct meter", place="meter_config")
    found: finsy.P4MeterConfig = at("meter_config", meter_config, config, table.meter)
    return found
