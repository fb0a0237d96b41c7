"""Small pieces of BMv2 JSON for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

STANDARD_METADATA = [
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 32),
    ("priority", 3),
    ("_padding", 3),
]
ALIASES = {
    "queueing_metadata": ["enq_timestamp", "enq_qdepth", "deq_timedelta", "deq_qdepth"],
    "intrinsic_metadata": [
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "mcast_grp",
        "egress_rid",
        "priority",
    ],
}
ERRORS = ["NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout"]


def field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def std(name: str) -> Json:
    return field("standard_metadata", name)


def const(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def param(index: int) -> Json:
    return {"type": "runtime_data", "value": index}


def local(index: int) -> Json:
    return {"type": "local", "value": index}


def op(operator: str, left: Json | None, right: Json | None, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": operator, "left": left, "right": right, **more}}


def wrapped(expression: Json) -> Json:
    return {"type": "expression", "value": expression}


def valid(header: str) -> Json:
    return op("d2b", None, field(header, "$valid$"))


def named(kind: str, name: str) -> Json:
    return {"type": kind, "value": name}


def call(name: str, *parameters: Json) -> Json:
    return {"op": name, "parameters": list(parameters)}


def extract(header: str, kind: str = "regular") -> Json:
    return call("extract", {"type": kind, "value": header})


def transition(value: int | None, target: str | None, mask: int | None = None, width: int = 2) -> Json:
    if value is None:
        return {"type": "default", "value": None, "mask": None, "next_state": target}
    text = f"0x{value:0{2 * width}x}"
    mask_text = None if mask is None else f"0x{mask:0{2 * width}x}"
    return {"type": "hexstr", "value": text, "mask": mask_text, "next_state": target}


def state(name: str, number: int, ops: list[Json], key: list[Json], transitions: list[Json]) -> Json:
    return {
        "name": name,
        "id": number,
        "parser_ops": ops,
        "transition_key": key,
        "transitions": transitions,
    }


def action(name: str, number: int, parameters: Sequence[tuple[str, int]], *calls: Json) -> Json:
    data = [{"name": each, "bitwidth": width} for each, width in parameters]
    return {"name": name, "id": number, "runtime_data": data, "primitives": list(calls)}


def key(kind: str, header: str, name: str, mask: str | None = None) -> Json:
    return {"match_type": kind, "target": [header, name], "mask": mask, "name": f"{header}.{name}"}


def table(
    name: str,
    number: int,
    keys: list[Json],
    actions: list[Json],
    next_node: str | None = None,
    **overrides: Any,
) -> Json:
    strength = ["valid", "exact", "lpm", "ternary", "range"]
    kinds = [each["match_type"] for each in keys]
    kind = max(kinds, key=strength.index, default="exact")
    default = actions[-1]
    result: Json = {
        "name": name,
        "id": number,
        "match_type": kind,
        "type": "simple",
        "max_size": 1024,
        "with_counters": False,
        "support_timeout": False,
        "direct_meters": None,
        "key": keys,
        "actions": [each["name"] for each in actions],
        "action_ids": [each["id"] for each in actions],
        "base_default_next": next_node,
        "next_tables": {each["name"]: next_node for each in actions},
        "default_entry": {
            "action_id": default["id"],
            "action_const": False,
            "action_data": [],
            "action_entry_const": False,
        },
    }
    result.update(overrides)
    return {name: value for name, value in result.items() if value is not ...}


def conditional(name: str, number: int, expression: Json, true: str | None, false: str | None) -> Json:
    return {"name": name, "id": number, "expression": expression, "true_next": true, "false_next": false}


def program(
    headers: dict[str, list[tuple[str, int]]],
    metadata: list[tuple[str, int]],
    states: list[Json],
    actions: list[Json],
    ingress: Json,
    egress: Json | None = None,
    deparsed: list[str] | None = None,
    **sections: Any,
) -> Json:
    types = {"scalars_t": metadata, "standard_metadata": STANDARD_METADATA}
    types.update({f"{name}_t": fields for name, fields in headers.items()})
    instances = [("scalars", "scalars_t", True), ("standard_metadata", "standard_metadata", True)]
    instances += [(name, f"{name}_t", False) for name in headers]
    empty_pipeline = {"init_table": None, "tables": [], "conditionals": [], "action_profiles": []}
    document: Json = {
        "__meta__": {"version": [2, 23], "compiler": "hand-written"},
        "header_types": [
            {"name": name, "id": i, "fields": [[each, width, False] for each, width in fields]}
            for i, (name, fields) in enumerate(types.items())
        ],
        "headers": [
            {"name": name, "id": i, "header_type": header_type, "metadata": is_metadata}
            for i, (name, header_type, is_metadata) in enumerate(instances)
        ],
        "errors": [[name, i] for i, name in enumerate(ERRORS)],
        "parsers": [{"name": "parser", "id": 0, "init_state": "start", "parse_states": states}],
        "deparsers": [{"name": "deparser", "id": 0, "order": deparsed or list(headers)}],
        "actions": actions,
        "pipelines": [
            {"name": "ingress", "id": 0, **empty_pipeline, **ingress},
            {"name": "egress", "id": 1, **empty_pipeline, **(egress or {})},
        ],
        "field_aliases": [
            [f"{header}.{name}", ["standard_metadata", name]] for header, names in ALIASES.items() for name in names
        ],
    }
    document.update(sections)
    return document
