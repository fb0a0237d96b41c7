"""Pipelines: tables, action profiles, conditionals."""

from __future__ import annotations

from typing import Any

from weft.compiler import keysets
from weft.compiler.emit_json.control_flow import ControlFlow
from weft.compiler.emit_json.expressions import hex_string, raw
from weft.compiler.emit_json.places import source_info
from weft.compiler.ir import Action, ActionProfile, Entry, KeyField, LoweredProgram, Pipeline, Table

Json = dict[str, Any]


class Ids:
    """Numbers for every kind of object."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def take(self, kind: str) -> int:
        """The next number of a kind."""
        number = self._next.get(kind, 0)
        self._next[kind] = number + 1
        return number


def pipeline_json(
    program: LoweredProgram,
    pipeline: Pipeline,
    flow: ControlFlow,
    first: str | None,
    action_ids: dict[int, int],
    ids: Ids,
) -> Json:
    """One pipeline, once its control flow is built."""
    used = {table.name for table in flow.table_order}
    tables = [table for table in reversed(flow.table_order) if table.name in used]
    result: Json = {
        "name": pipeline.name,
        "id": ids.take("pipelines"),
        **source_info(pipeline.span),
        "init_table": first,
        "tables": [_table(table, flow, action_ids, ids) for table in tables],
        "action_profiles": [_profile(profile, ids) for profile in pipeline.profiles if _profile_used(profile, tables)],
        "conditionals": [],
    }
    for conditional in reversed(flow.conditionals):
        result["conditionals"].append({"name": conditional["name"], "id": ids.take("conditionals"), **conditional})
    return result


def _profile_used(profile: ActionProfile, tables: list[Table]) -> bool:
    return any(table.profile is profile for table in tables)


def _profile(profile: ActionProfile, ids: Ids) -> Json:
    result: Json = {
        "name": profile.name,
        "id": ids.take("action_profiles"),
        **source_info(profile.span),
        "max_size": profile.size,
    }
    if profile.algorithm is not None:
        inputs = [raw(each) for each in profile.selector_input or []]
        result["selector"] = {"algo": profile.algorithm, "input": inputs}
    return result


def table_match_type(keys: list[KeyField]) -> str:
    """The strongest kind among the keys."""
    kinds = {key.match_kind for key in keys}
    if "range" in kinds:
        return "range"
    if "ternary" in kinds or "optional" in kinds:
        return "ternary"
    return "lpm" if "lpm" in kinds else "exact"


def _table(table: Table, flow: ControlFlow, action_ids: dict[int, int], ids: Ids) -> Json:
    nodes, base = flow.next_nodes[table.name]
    keys = [key for key in table.keys if key.match_kind != "selector"]
    kind = "simple"
    if table.profile is not None:
        kind = "indirect" if table.profile.algorithm is None else "indirect_ws"
    result: Json = {
        "name": table.name,
        "id": ids.take("tables"),
        **source_info(table.span),
        "key": [_key(key) for key in keys],
        "match_type": table_match_type(keys),
        "type": kind,
    }
    if table.profile is not None:
        result["action_profile"] = table.profile.name
    result |= {
        "max_size": capacity(table),
        "with_counters": table.with_counters,
        "support_timeout": table.support_timeout,
        "direct_meters": table.direct_meter,
        "action_ids": [action_ids[id(action)] for action in table.actions],
        "actions": [action.name for action in table.actions],
        "base_default_next": base,
        "next_tables": nodes,
    }
    if table.default_action is not None and table.profile is None:
        result["default_entry"] = {
            "action_id": action_ids[id(table.default_action)],
            "action_const": table.default_is_const,
            "action_data": [hex_string(argument.value) for argument in table.default_arguments],
            "action_entry_const": table.default_is_const,
        }
    if table.entries or (table.entries is not None and table.entries_const):
        # An empty list, too: it keeps the control plane from adding entries.
        result["entries"] = [_entry(entry, keys, action_ids) for entry in table.entries]
    return result


def capacity(table: Table) -> int:
    """Entries it holds: a constant table exactly its own."""
    if table.entries and table.entries_const:
        return len(table.entries)
    return max(table.size, len(table.entries or []))


def _key(key: KeyField) -> Json:
    kind = "ternary" if key.match_kind == "optional" else key.match_kind
    mask = None if key.mask is None else hex_string(key.mask, (key.width + 7) // 8)
    return {"match_type": kind, "name": key.name, "target": raw(key.target)["value"], "mask": mask}


def _entry(entry: Entry, keys: list[KeyField], action_ids: dict[int, int]) -> Json:
    return {
        **source_info(entry.span),
        "match_key": [_match(value, key) for value, key in zip(entry.keys, keys, strict=True)],
        "action_entry": {
            "action_id": action_ids[id(entry.action)],
            "action_data": [hex_string(argument.value) for argument in entry.arguments],
        },
        "priority": entry.priority,
    }


def _match(value: Any, key: KeyField) -> Json:
    bytes_ = (key.width + 7) // 8
    kind = key.match_kind
    low, high = keysets.bounds(value, key.width)
    if kind == "exact":
        return {"match_type": "exact", "key": hex_string(low, bytes_)}
    if kind == "range":
        return {"match_type": "range", "start": hex_string(low, bytes_), "end": hex_string(high, bytes_)}
    number, mask = keysets.value_and_mask(value, key.width)
    if kind == "lpm":
        return {
            "match_type": "lpm",
            "key": hex_string(number, bytes_),
            "prefix_length": mask.bit_count(),
        }
    return {"match_type": "ternary", "key": hex_string(number, bytes_), "mask": hex_string(mask, bytes_)}


def visible_actions(program: LoweredProgram, tables: list[Table]) -> list[Action]:
    """Actions that some table has."""
    used = {id(action) for table in tables for action in table.actions}
    return [action for action in program.actions if id(action) in used]
