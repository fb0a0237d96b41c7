"""packet_in and packet_out: extract, lookahead, advance, emit."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Advance, Extract, Lookahead
from weft.compiler.lower import build, values
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.targets import evaluate_target
from weft.compiler.types import BOOL, BitsType, StructType, Type, bits, width_of


def call_packet_method(context: Context, expression: ast.Call, packet: values.PacketValue) -> values.P4Value | None:
    """Emit a method of a packet and return its result."""
    name = expression.target.name
    if name == "extract":
        _extract(context, expression)
        return None
    if name == "lookahead":
        return _lookahead(context, expression)
    if name == "advance":
        context.emit(Advance(evaluate_scalar(context, expression.ordered[0]), expression.span))
        return None
    if name == "emit":
        _emit_headers(context, evaluate(context, expression.ordered[0]), expression)
        return None
    context.refuse(f"BMv2 has no '{packet.kind}.{name}'", expression)


def _emit_headers(context: Context, value: values.P4Value, where: ast.Node) -> None:
    """packet_out.emit: the order in which the deparser looks at header instances."""
    order = context.program.deparser_order
    if isinstance(value, values.HeaderValue):
        order.append(value.name)
    elif isinstance(value, values.StackValue):
        for element in value.elements:
            _emit_headers(context, element, where)
    elif isinstance(value, values.UnionValue):
        for member in value.members.values():
            _emit_headers(context, member, where)
    elif isinstance(value, values.StructValue):
        for part in value.fields.values():
            _emit_headers(context, part, where)
    elif not isinstance(value, values.HeaderLiteral) or value.fields is not None:
        context.refuse("only headers, stacks, unions and structs of them can be emitted", where)


def _extract(context: Context, expression: ast.Call) -> None:
    argument = expression.ordered[0]
    length = evaluate_scalar(context, expression.ordered[1]) if len(expression.ordered) > 1 else None
    span = expression.span
    if argument is None:
        type_ = context.frame.type(next(iter(expression.bindings.values())))
        ignored = context.temporary(type_, "ignored")
        assert isinstance(ignored, values.HeaderValue)
        context.emit(Extract("regular", ignored.name, None, length, span))
        return
    target = evaluate_target(context, argument)
    if isinstance(target, values.HeaderValue):
        context.emit(Extract("regular", target.name, None, length, span))
    elif isinstance(target, values.StackCursor) and target.which == "next":
        context.emit(Extract("stack", target.stack.name, None, length, span))
    elif isinstance(target, values.UnionCursor) and target.cursor.which == "next":
        context.emit(Extract("union_stack", target.cursor.stack.name, target.member, length, span))
    elif isinstance(target, values.HeaderElement):
        copy = context.temporary(target.stack.type.element)
        assert isinstance(copy, values.HeaderValue)
        context.emit(Extract("regular", copy.name, None, length, span))
        assign(context, target, copy, span)
    else:
        context.refuse("BMv2 can extract into a header or the next element of a stack only", argument)


def is_lookahead(expression: ast.Expression) -> bool:
    """Whether it is packet.lookahead<…>() itself."""
    return (
        isinstance(expression, ast.Call)
        and expression.kind == "method"
        and expression.target.name == "lookahead"
        and isinstance(expression.callee, ast.Member)
        and str(expression.callee.base.type) == "packet_in"
    )


def direct_lookahead(context: Context, expression: ast.Call) -> Lookahead | None:
    """The lookahead of an unsigned scalar, usable where BMv2 takes one directly."""
    scalar = scalar_type(context.type_of(expression))
    if not isinstance(scalar, BitsType) or scalar.signed or scalar.width == 0:
        return None
    return Lookahead(0, scalar)


def _lookahead(context: Context, expression: ast.Call) -> values.P4Value:
    type_ = context.type_of(expression)
    value, _ = _look(context, type_, 0, expression)
    return value


def _look(context: Context, type_: Type, offset: int, where: ast.Expression) -> tuple[values.P4Value, int]:
    scalar = scalar_type(type_)
    if scalar is not None:
        width = width_of(type_) if scalar is not BOOL else 1
        assert width is not None
        if width == 0:
            return build.constant(0, scalar), offset
        raw = context.snapshot(Lookahead(offset, bits(width)), where.span)
        return build.convert(raw, scalar), offset + width
    parts: dict[str, values.P4Value] = {}
    for name, inner in member_types(type_):
        parts[name], offset = _look(context, inner, offset, where)
    if isinstance(type_, StructType) and type_.kind == "header":
        return values.HeaderLiteral(type_, parts), offset
    return values.StructValue(type_, parts), offset
