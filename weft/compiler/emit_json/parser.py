"""Parse states."""

from __future__ import annotations

from typing import Any

from weft.compiler import ir
from weft.compiler.emit_json.actions import primitive
from weft.compiler.emit_json.expressions import b2d, convert, hex_string, operand, raw, target, wrapped
from weft.compiler.emit_json.places import source_info
from weft.compiler.types import BOOL

Json = dict[str, Any]


def parser_json(program: ir.LoweredProgram) -> Json:
    """The parser with the start state first."""
    states = sorted(program.states, key=lambda state: state.name != "start")
    return {
        "name": "parser",
        "id": 0,
        "init_state": "start",
        "parse_states": [_state(state, index) for index, state in enumerate(states)],
    }


def _state(state: ir.ParseState, index: int) -> Json:
    widths = [ir.bit_width(key.type) for key in state.keys]
    bytes_ = sum((width + 7) // 8 for width in widths)
    full = 0
    for width in widths:
        full = (full << ((width + 7) // 8 * 8)) | ((1 << width) - 1)
    return {
        "name": state.name,
        "id": index,
        **source_info(state.span),
        "parser_ops": [_operation(statement) for statement in state.operations],
        "transitions": [{**source_info(match.span), **_transition(match, bytes_, full)} for match in state.matches],
        "transition_key": [raw(key) for key in state.keys],
    }


def _transition(match: ir.KeysetMatch, bytes_: int, full: int) -> Json:
    if match.value_set is not None:
        return {"type": "parse_vset", "value": match.value_set, "mask": None, "next_state": match.next_state}
    if match.value is None or match.mask == 0:
        return {"type": "default", "value": None, "mask": None, "next_state": match.next_state}
    assert match.mask is not None
    exact = match.mask & full == full
    return {
        "type": "hexstr",
        "value": hex_string(match.value, bytes_),
        "mask": None if exact else hex_string(match.mask, bytes_),
        "next_state": match.next_state,
    }


def _operation(statement: ir.Stmt) -> Json:
    if isinstance(statement, ir.Extract):
        return _extract(statement)
    if isinstance(statement, ir.Assign) and isinstance(statement.target, ir.ElementField):
        # "set" takes fields only; the action's primitive takes an element as well.
        return {"op": "primitive", "parameters": [primitive(statement)]}
    if isinstance(statement, ir.Assign):
        return {"op": "set", "parameters": [target(statement.target), _set_value(statement.value)]}
    if isinstance(statement, ir.Advance):
        return {"op": "advance", "parameters": [operand(statement.amount)]}
    if isinstance(statement, ir.Verify):
        return {"op": "verify", "parameters": [convert(statement.condition), convert(statement.error)]}
    if isinstance(statement, ir.Primitive):
        return {"op": "primitive", "parameters": [primitive(statement)]}
    raise TypeError(f"{type(statement).__name__} cannot stand in a parse state")


def _extract(statement: ir.Extract) -> Json:
    value: Any = statement.target
    if statement.kind == "union_stack":
        value = [statement.target, statement.member]
    parameters: list[Json] = [{"type": statement.kind, "value": value}]
    if statement.length is None:
        return {"op": "extract", "parameters": parameters}
    parameters.append({"type": "expression", "value": convert(statement.length)})
    return {"op": "extract_VL", "parameters": parameters}


def _set_value(value: ir.Expr) -> Json:
    if isinstance(value, ir.Lookahead):
        return raw(value)
    if value.type is BOOL and isinstance(value, ir.FieldRef | ir.Valid):
        return wrapped(b2d(convert(value)))
    return operand(value)
