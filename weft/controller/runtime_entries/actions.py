"""Actions with arguments in files of entries: a single action, or several with weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import finsy

from weft.controller.errors import SettingError
from weft.controller.plain_values import number_of
from weft.controller.program_names import ActionNames, ByName, TableNames
from weft.controller.runtime_entries.fields import PORT_BITS, at, entries_of, mapping, needed, number_at
from weft.quantities.units import shown

WEIGHT_BITS = 31
_CHOICE_KEYS = ("action_name", "action_params", "weight", "watch_port")


def named_action(entry: Mapping[str, Any], actions: ByName[ActionNames], whose: str) -> finsy.P4TableAction:
    """Return the action given by `action_name` and `action_params`, one of `actions`. Raises SettingError."""
    return action_of(actions.named(needed(entry, "action_name"), whose), entry.get("action_params"))


def action_of(action: ActionNames, arguments: Any) -> finsy.P4TableAction:
    """Return an action with arguments given by name. Raises SettingError."""
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        raise SettingError(f"must be a mapping of parameters to values, is {shown(arguments)}", place="action_params")
    values = {}
    for name, value in arguments.items():
        info = action.parameters.named(name, action.name)
        values[info.name] = at(f"action_params.{name}", number_of, value, info.bitwidth)
    missing = [name for name in action.parameters if name not in values]
    if missing:
        raise SettingError(f"{action.name} needs {', '.join(missing)}, too", place="action_params")
    return finsy.P4TableAction(action.name, **values)


def action_set(entry: Mapping[str, Any], table: TableNames) -> list[Any]:
    """Return `action_set`, a selector's weighted choices (P4Runtime, section 9.2.3). Raises SettingError."""
    chosen = [at(place, _weighted, each, table) for place, each in entries_of(entry, "action_set")]
    if not chosen:
        raise SettingError("has no actions", place="action_set")
    return chosen


def weight_of(entry: Mapping[str, Any]) -> int | tuple[int, int]:
    """Return a weight (1 by default), paired with the port to watch if there is one. Raises SettingError."""
    weight = number_at(entry, "weight", WEIGHT_BITS, 1)
    if not weight:
        raise SettingError("weight: 0", valid=f"1 to {(1 << WEIGHT_BITS) - 1}")
    if entry.get("watch_port") is None:
        return weight
    return weight, number_at(entry, "watch_port", PORT_BITS)


def _weighted(value: Any, table: TableNames) -> tuple[int | tuple[int, int], finsy.P4TableAction]:
    entry = mapping(value, _CHOICE_KEYS, "an action of a set")
    return weight_of(entry), named_action(entry, table.actions, table.name)
