"""Reads parsers and deparsers."""

from __future__ import annotations

from weft.switch.bmv2json import model_parsers
from weft.switch.bmv2json.expressions import (
    Constant,
    Expression,
    HeaderRef,
    Kind,
    StackRef,
)
from weft.switch.bmv2json.model_headers import HeaderType
from weft.switch.bmv2json.node import Node
from weft.switch.bmv2json.read_expressions import ExpressionReader, lookahead, read_primitive, source_of
from weft.switch.bmv2json.scope import Scope, read_named


def read_parser(scope: Scope, node: Node) -> model_parsers.Parser:
    """Read one of `parsers`."""
    state_nodes = node.array("parse_states")
    names = {state["name"].string() for state in state_nodes}
    states = read_named(state_nodes, "parse state", lambda state: _state(scope, state, names))
    initial = node.optional("init_state")
    return model_parsers.Parser(
        node["name"].string(),
        node["id"].integer(),
        None if initial is None else initial.name_in(states, "parse state"),
        states,
    )


def _state(scope: Scope, node: Node, names: set[str]) -> model_parsers.ParseState:
    reader = ExpressionReader(scope, in_parser=True)
    key = tuple(_key_field(scope, element, reader) for element in node.array("transition_key"))
    key_width_bits = sum((field.width_bits + 7) // 8 * 8 for field in key)
    return model_parsers.ParseState(
        node["name"].string(),
        node["id"].integer(),
        tuple(_operation(scope, each, reader) for each in node.array("parser_ops")),
        key,
        tuple(_transition(scope, each, names, key_width_bits) for each in node.array("transitions")),
        source_of(node),
    )


def _key_field(scope: Scope, node: Node, reader: ExpressionReader) -> model_parsers.TransitionKeyField:
    type_name = node["type"].one_of(("field", "stack_field", "union_stack_field", "lookahead"))
    value = node["value"]
    match type_name:
        case "field":
            return scope.field_ref(value)
        case "stack_field":
            return reader.stack_field(value)
        case "union_stack_field":
            return reader.union_stack_field(value)
    return lookahead(value)


def _transition(scope: Scope, node: Node, names: set[str], key_width_bits: int) -> model_parsers.Transition:
    value_node = node.optional("value")
    type_node = node.optional("type")
    if type_node is not None:
        kind = model_parsers.TransitionKind(type_node.one_of([each.value for each in model_parsers.TransitionKind]))
    else:  # before format 2.8 the default transition had the value "default"
        is_default = value_node is None or value_node.value == "default"
        kind = model_parsers.TransitionKind.DEFAULT if is_default else model_parsers.TransitionKind.VALUE
    next_node = node.optional("next_state")
    next_state = None if next_node is None else next_node.name_in(names, "parse state")
    mask_node = node.optional("mask")
    mask = None if mask_node is None else _key_value(mask_node, key_width_bits)
    if kind is model_parsers.TransitionKind.DEFAULT:
        return model_parsers.Transition(kind, next_state, source=source_of(node))
    if kind is model_parsers.TransitionKind.VALUE_SET:
        name = node["value"].name_in(scope.value_sets, "parser value set")
        return model_parsers.Transition(kind, next_state, mask=mask, value_set=name, source=source_of(node))
    return model_parsers.Transition(
        kind, next_state, _key_value(node["value"], key_width_bits), mask, None, source_of(node)
    )


def _key_value(node: Node, width_bits: int) -> int:
    value = node.hexstr()
    if not 0 <= value < 1 << width_bits:
        node.fail(f"{node.value} does not fit the transition key of {width_bits // 8} bytes")
    return value


def _operation(scope: Scope, node: Node, reader: ExpressionReader) -> model_parsers.ParserOperation:
    op = node["op"].one_of(("extract", "extract_VL", "set", "verify", "shift", "advance", "primitive"))
    parameters = node["parameters"]
    match op:
        case "extract" | "extract_VL":
            return _extract(scope, parameters, reader, op == "extract_VL")
        case "set":
            target_node, source_node = parameters.items(2)
            target_node["type"].one_of(("field",))
            target = scope.field_ref(target_node["value"])
            if target.is_validity:
                target_node.fail("validity cannot be set in a parser")
            return model_parsers.SetField(target, reader.read_kind(source_node, Kind.DATA))
        case "verify":
            condition_node, error_node = parameters.items(2)
            return model_parsers.Verify(
                reader.read_kind(condition_node, Kind.BOOL), reader.read_kind(error_node, Kind.DATA)
            )
        case "shift":
            return model_parsers.Advance(Constant(8 * parameters.items(1)[0].integer(0, 65535)))
        case "advance":
            return model_parsers.Advance(reader.read_kind(parameters.items(1)[0], Kind.DATA))
    (call,) = parameters.items(1)
    return model_parsers.ParserPrimitive(read_primitive(scope, call, reader, None))


def _extract(scope: Scope, parameters: Node, reader: ExpressionReader, variable: bool) -> model_parsers.Extract:
    nodes = parameters.items(2 if variable else 1)
    type_name = nodes[0]["type"].one_of(("regular", "stack", "union_stack"))
    value = nodes[0]["value"]
    target: HeaderRef | StackRef | model_parsers.UnionStackMember
    if type_name == "regular":
        header = scope.headers[value.name_in(scope.headers, "header")]
        if header.metadata:
            value.fail(f"{header.name!r} is metadata, which cannot be extracted")
        target, header_type = HeaderRef(header.name), header.type
    elif type_name == "stack":
        stack = scope.header_stacks[value.name_in(scope.header_stacks, "header stack")]
        target, header_type = StackRef(stack.name), stack.type
    else:
        target, header_type = _union_stack_member(scope, value)
    if variable != (header_type.variable_field is not None):
        needed = "extract" if variable else "extract_VL"
        nodes[0].fail(f"header type {header_type.name!r} is extracted by {needed!r}")
    length: Expression | None = reader.read_kind(nodes[1], Kind.DATA) if variable else None
    return model_parsers.Extract(target, length)


def _union_stack_member(scope: Scope, value: Node) -> tuple[model_parsers.UnionStackMember, HeaderType]:
    stack_node, member_node = value.items(2)
    stack = scope.header_union_stacks[stack_node.name_in(scope.header_union_stacks, "header union stack")]
    members = dict(stack.type.members)
    member = member_node.name_in(members, "union member")
    return model_parsers.UnionStackMember(stack.name, member), members[member]


def read_deparser(scope: Scope, node: Node) -> model_parsers.Deparser:
    """Read one of `deparsers`."""
    reader = ExpressionReader(scope)
    calls = node.array("primitives")
    order = tuple(each.name_in(scope.headers, "header") for each in node["order"].items())
    for name, each in zip(order, node["order"].items(), strict=True):
        if scope.headers[name].metadata:
            each.fail(f"{name!r} is metadata, which cannot be emitted")
    return model_parsers.Deparser(
        node["name"].string(),
        node["id"].integer(),
        order,
        tuple(read_primitive(scope, call, reader, len(calls)) for call in calls),
    )
