"""Entries that users write in files, in the schema of p4lang's tutorials, checked against P4Info.

```json
{"table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dstAddr": ["10.0.1.1", 32]},
                    "action_name": "MyIngress.ipv4_forward", "action_params": {"port": 1}}],
 "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
 "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 2}], "packet_length_bytes": 128}]}
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import finsy

from weft.controller.entities import Entity
from weft.controller.errors import SettingError
from weft.controller.plain_values import NEEDS_PRIORITY, count_of, match_value, number_of
from weft.controller.program_names import MOST_HINTED, ActionNames, ProgramNames, TableNames
from weft.hints import did_you_mean
from weft.quantities.units import shown

MAX_ENTRIES = 1 << 20
_PRIORITY_BITS = 31
_GROUP_BITS = 16
_SESSION_BITS = 15
_PORT_BITS = 32
_LENGTH_BITS = 16
_INSTANCE_BITS = 16
_KINDS = ("table_entries", "multicast_group_entries", "clone_session_entries")
_IGNORED = ("target", "p4info", "bmv2_json")
"""Keys of the tutorials' files whose place is the scenario's `p4`."""
_TABLE_KEYS = (
    "table",
    "match",
    "action_name",
    "action_params",
    "default_action",
    "priority",
    "idle_timeout_ns",
)
_GROUP_KEYS = ("multicast_group_id", "replicas")
_SESSION_KEYS = ("clone_session_id", "replicas", "packet_length_bytes", "class_of_service")
_REPLICA_KEYS = ("egress_port", "instance")


@dataclass(frozen=True)
class EntriesSettings:
    """Entries of the user's own, by switch: a part of its plan, before what features would have in their place."""

    by_switch: Mapping[str, tuple[Entity, ...]] = field(default_factory=dict)


def runtime_entries(tree: Any, program: ProgramNames) -> tuple[Entity, ...]:
    """Return the entities that a file's content stands for.

    Raises:
        SettingError: says which entry is wrong, counted from 0, and how: `table_entries[3]: unknown table 'acl'; …`.

    """
    readers: tuple[Callable[[Mapping[str, Any]], Entity], ...] = (
        lambda entry: table_entry(entry, program),
        _multicast_group,
        _clone_session,
    )
    tree = _mapping(tree, (*_KINDS, *_IGNORED), "a file of entries")
    return tuple(
        entity
        for kind, read in zip(_KINDS, readers, strict=True)
        for entity in _entities_of(tree.get(kind), kind, read)
    )


def entry_places(tree: Mapping[str, Any]) -> list[str]:
    """Return where each of `runtime_entries`'s entities is in a file's content: `table_entries[3]`."""
    return [f"{kind}[{number}]" for kind in _KINDS for number in range(len(tree.get(kind) or ()))]


def table_entry(entry: Any, program: ProgramNames) -> finsy.P4TableEntry:
    """Return a table's entry, or its default one. Raises SettingError."""
    entry = _mapping(entry, _TABLE_KEYS, "an entry of a table")
    table = program.tables.named(_needed(entry, "table"))
    is_default = entry.get("default_action", False)
    if not isinstance(is_default, bool):
        raise SettingError(f"default_action: {shown(is_default)} (valid: true, false)")
    match = _match(entry.get("match"), table, is_default)
    action = _action(entry, table, is_default)
    timeout_ns = count_of(entry.get("idle_timeout_ns", 0), 63)
    if timeout_ns and not table.idle_timeout:
        raise SettingError(f"idle_timeout_ns: table {table.name} has no support_timeout = true")
    return finsy.P4TableEntry(
        table.name,
        match=finsy.P4TableMatch(match) if match else None,
        action=action,
        priority=_priority(entry.get("priority"), table, is_default),
        is_default_action=is_default,
        idle_timeout_ns=timeout_ns,
    )


def action_of(action: ActionNames, arguments: Any) -> finsy.P4TableAction:
    """Return an action with its arguments by name. Raises SettingError."""
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, Mapping):
        raise SettingError(f"action_params: must be a mapping of parameters to values, is {shown(arguments)}")
    values = {}
    for name, value in arguments.items():
        info = action.parameters.named(name, action.name)
        values[info.name] = _at(f"action_params.{name}", number_of, value, info.bitwidth)
    missing = [name for name in action.parameters if name not in values]
    if missing:
        raise SettingError(f"action_params: {action.name} needs {', '.join(missing)}, too")
    return finsy.P4TableAction(action.name, **values)


def _entities_of(entries: Any, kind: str, read: Callable[[Mapping[str, Any]], Entity]) -> Iterator[Entity]:
    if entries is None:
        return
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise SettingError(f"{kind}: must be a list of at most {MAX_ENTRIES:,} entries")
    for number, entry in enumerate(entries):
        yield _at(f"{kind}[{number}]", read, entry)


def _at(place: str, read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except SettingError as error:
        raise SettingError(f"{place}: {error}") from None


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
        values[info.name] = _at(f"match.{name}", match_value, info, value)
    missing = [
        name for name, info in table.fields.items() if info.match_type == info.EXACT and name not in values
    ]
    if missing and not is_default:
        raise SettingError(f"match: table {table.name} needs {', '.join(missing)}, which it matches exactly")
    return values


def _action(entry: Mapping[str, Any], table: TableNames, is_default: bool) -> finsy.P4TableAction:
    if table.of_profile:
        raise SettingError(
            f"table: {table.name} chooses by an action profile, whose members files do not have"
        )
    actions = table.default_actions if is_default else table.actions
    return action_of(actions.named(_needed(entry, "action_name"), table.name), entry.get("action_params"))


def _priority(priority: Any, table: TableNames, is_default: bool) -> int:
    number = 0 if priority is None else _at("priority", count_of, priority, _PRIORITY_BITS)
    wanted = not is_default and any(info.match_type in NEEDS_PRIORITY for info in table.fields.values())
    if wanted and not number:
        raise SettingError(
            f"priority: entries of {table.name} need one (valid: 1 or more; larger goes first)"
        )
    if number and not wanted:
        raise SettingError(f"priority: entries of {table.name} have none: its keys are exact or prefixes")
    return int(number)


def _multicast_group(entry: Any) -> finsy.P4MulticastGroupEntry:
    entry = _mapping(entry, _GROUP_KEYS, "a multicast group")
    group = count_of(_needed(entry, "multicast_group_id"), _GROUP_BITS)
    if not group:
        raise SettingError(f"multicast_group_id: 0 (valid: 1 to {(1 << _GROUP_BITS) - 1})")
    return finsy.P4MulticastGroupEntry(group, replicas=_replicas(entry))


def _clone_session(entry: Any) -> finsy.P4CloneSessionEntry:
    entry = _mapping(entry, _SESSION_KEYS, "a clone session")
    session = count_of(_needed(entry, "clone_session_id"), _SESSION_BITS)
    if not session:
        raise SettingError(f"clone_session_id: 0 (valid: 1 to {(1 << _SESSION_BITS) - 1})")
    return finsy.P4CloneSessionEntry(
        session,
        class_of_service=count_of(entry.get("class_of_service", 0), 8),
        packet_length_bytes=count_of(entry.get("packet_length_bytes", 0), _LENGTH_BITS),
        replicas=_replicas(entry),
    )


def _replicas(entry: Mapping[str, Any]) -> list[tuple[int, int]]:
    replicas = _needed(entry, "replicas")
    if not isinstance(replicas, list):
        raise SettingError(f"replicas: must be a list, is {shown(replicas)}")
    found: dict[tuple[int, int], None] = {}
    for number, each in enumerate(replicas):
        place = f"replicas[{number}]"
        replica = _at(place, _mapping, each, _REPLICA_KEYS, "a replica")
        port = _at(f"{place}.egress_port", count_of, _at(place, _needed, replica, "egress_port"), _PORT_BITS)
        instance = _at(f"{place}.instance", count_of, replica.get("instance", 0), _INSTANCE_BITS)
        if (port, instance) in found:
            raise SettingError(f"{place}: port {port} with instance {instance} is there twice")
        found[port, instance] = None
    return list(found)


def _mapping(value: Any, keys: Collection[str], what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingError(f"{what} is a mapping (keys: {', '.join(keys)}), not {shown(value)}")
    for key in value:
        if key not in keys:
            raise SettingError(f"unknown key {shown(key)}; {did_you_mean(str(key)[:MOST_HINTED], keys)}")
    return value


def _needed(entry: Mapping[str, Any], key: str) -> Any:
    if entry.get(key) is None:
        raise SettingError(f"{key} is missing")
    return entry[key]
