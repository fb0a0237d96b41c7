"""The whole JSON document (behavioral-model, JSON_format.md, version 2.23)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.compiler import ir
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.emit_json.actions import action_primitives, primitive
from weft.compiler.emit_json.control_flow import ControlFlow
from weft.compiler.emit_json.expressions import condition, raw
from weft.compiler.emit_json.headers import field_json, header_sections
from weft.compiler.emit_json.parser import parser_json
from weft.compiler.emit_json.pipelines import Ids, capacity, pipeline_json, visible_actions
from weft.compiler.emit_json.places import source_info

Json = dict[str, Any]
VERSION = [2, 23]
COMPILER = "weft"


def emit_json(program: ir.LoweredProgram, diagnostics: Diagnostics) -> Json:
    """The document as nested dicts and lists. Raises CompileError."""
    ids = Ids()
    names = {table.name for pipeline in program.pipelines for table in pipeline.tables}
    flows: list[tuple[ControlFlow, str | None]] = []
    for pipeline in program.pipelines:
        flow = ControlFlow(program, pipeline, diagnostics, names)
        try:
            flows.append((flow, flow.build()))
        except Refused:
            continue
    diagnostics.raise_if_errors()
    tables = [table for flow, _ in flows for table in flow.table_order]
    actions = visible_actions(program, tables)
    action_ids = {id(action): index for index, action in enumerate(actions)}
    capacities = {table.name: capacity(table) for table in tables}
    # The table of a direct counter or meter may be applied only where no packet ever gets.
    counters = [entry for entry in program.counters if entry.table is None or entry.table in capacities]
    meters = [entry for entry in program.meters if entry.table is None or entry.table in capacities]
    headers = header_sections(program)
    return {
        **headers,
        "field_lists": [_field_list(entry) for entry in program.field_lists],
        "errors": [[name, number] for name, number in program.errors.items()],
        "enums": [
            {"name": name, "entries": [[member, number] for member, number in values.items()]}
            for name, values in program.enums.items()
        ],
        "parsers": [parser_json(program)],
        "parse_vsets": [
            {"name": entry.name, "id": index, "compressed_bitwidth": entry.width, "max_size": entry.size}
            for index, entry in enumerate(program.value_sets)
        ],
        "deparsers": [_deparser(program)],
        "meter_arrays": [_meter(entry, index, capacities) for index, entry in enumerate(meters)],
        "counter_arrays": [_counter(entry, index) for index, entry in enumerate(counters)],
        "register_arrays": [
            {
                "name": entry.name,
                "id": index,
                **source_info(entry.span),
                "size": entry.size,
                "bitwidth": entry.width,
            }
            for index, entry in enumerate(program.registers)
        ],
        "calculations": [_calculation(entry, index) for index, entry in enumerate(program.calculations)],
        "learn_lists": [_field_list(entry) for entry in program.learn_lists],
        "actions": [_action(action, index) for index, action in enumerate(actions)],
        "pipelines": [
            pipeline_json(program, pipeline, flow, first, action_ids, ids)
            for pipeline, (flow, first) in zip(program.pipelines, flows, strict=True)
        ],
        "checksums": [_checksum(entry, index) for index, entry in enumerate(program.checksums)],
        "force_arith": [],
        "extern_instances": [],
        "field_aliases": [[alias, [header, field]] for alias, header, field in program.aliases],
        "program": program.source_name,
        "__meta__": {"version": VERSION, "compiler": COMPILER},
    }


def _action(action: ir.Action, index: int) -> Json:
    return {
        "name": action.name,
        "id": index,
        "runtime_data": [{"name": parameter.name, "bitwidth": parameter.width} for parameter in action.parameters],
        "primitives": action_primitives(action.body),
    }


def _deparser(program: ir.LoweredProgram) -> Json:
    operations = [statement for statement in program.deparser_operations if isinstance(statement, ir.Primitive)]
    return {
        "name": "deparser",
        "id": 0,
        **source_info(program.deparser_span),
        "order": list(program.deparser_order),
        "primitives": [primitive(statement) for statement in operations],
    }


def _meter(meter: ir.Meter, index: int, capacities: Mapping[str, int]) -> Json:
    result: Json = {
        "name": meter.name,
        "id": index,
        **source_info(meter.span),
        "is_direct": meter.table is not None,
        # simple_switch ends if a direct meter has another size than its table
        "size": meter.size if meter.table is None else capacities[meter.table],
        "rate_count": 2,
        "type": meter.unit,
    }
    if meter.table is not None:
        result["binding"] = meter.table
        assert meter.result is not None
        result["result_target"] = raw(meter.result)["value"]
    return result


def _counter(counter: ir.Counter, index: int) -> Json:
    result: Json = {"name": counter.name, "id": index, **source_info(counter.span)}
    if counter.table is None:
        return result | {"size": counter.size, "is_direct": False}
    return result | {"is_direct": True, "binding": counter.table}


def _calculation(calculation: ir.Calculation, index: int) -> Json:
    inputs = [_calculation_input(each) for each in calculation.inputs]
    if calculation.payload:
        inputs.append({"type": "payload", "value": None})
    return {
        "name": calculation.name,
        "id": index,
        **source_info(calculation.span),
        "algo": calculation.algorithm,
        "input": inputs,
    }


def _calculation_input(value: ir.Expr) -> Json:
    if isinstance(value, ir.Const):
        width = ir.bit_width(value.type)
        # BMv2 takes the bits of a constant, not its sign.
        number = value.value & ((1 << width) - 1)
        return {"type": "hexstr", "value": f"0x{number:0{(width + 7) // 8 * 2}x}", "bitwidth": width}
    return field_json(value)


def _checksum(checksum: ir.Checksum, index: int) -> Json:
    return {
        "name": checksum.name,
        "id": index,
        **source_info(checksum.span),
        "target": raw(checksum.target)["value"],
        "type": "generic",
        "calculation": checksum.calculation,
        "verify": checksum.verify,
        "update": not checksum.verify,
        "if_cond": condition(checksum.condition),
    }


def _field_list(entry: ir.FieldList) -> Json:
    return {
        "id": entry.id,
        "name": entry.name,
        **source_info(entry.span),
        "elements": [field_json(each) for each in entry.elements],
    }


INDENTED_DEPTH = 5
"""Levels that are spread over lines. What is deeper, operands for the most part, stays on its line: spread out, too,
it would take three times as long to write, and twice the space.
"""

_encode = json.JSONEncoder().encode


def document_text(document: dict[str, Any]) -> str:
    """JSON text of `document`, indented, with a newline at its end."""
    return _spread(document, INDENTED_DEPTH, "\n") + "\n"


def _spread(value: Any, depth: int, line_end: str) -> str:
    """`value` with `depth` levels spread over lines; `line_end` is a newline and the indentation of its own line."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return _encode(value)
    inner = line_end + "  "
    if isinstance(value, dict):
        members = [f"{_encode(name)}: {_spread(each, depth - 1, inner)}" for name, each in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{line_end}}}"
    return f"[{inner}{f',{inner}'.join(_spread(each, depth - 1, inner) for each in value)}{line_end}]"
