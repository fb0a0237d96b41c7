"""Assignments of values of every kind, and what `out` arguments and fresh variables start with."""

from __future__ import annotations

from weft.compiler import ast, ir
from weft.compiler.lower import build
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import retyped
from weft.compiler.lower.overlap import overlap, places
from weft.compiler.lower.storage import fields_of
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    P4Value,
    PlusSliceTarget,
    SliceTarget,
    StackCursor,
    StackValue,
    StructValue,
    UnionCursor,
    UnionValue,
)
from weft.compiler.source import Span
from weft.compiler.types import BitsType, StructType, VarbitType, bits, is_header


def assign(context: Context, target: P4Value, value: P4Value, span: Span | None) -> None:
    """target = value, for values of one type."""
    if isinstance(target, ir.FieldRef | ir.LastField | ir.ElementField):
        _assign_scalar(context, target, value, span)
    elif isinstance(target, SliceTarget):
        _assign_slice(context, target, value, span)
    elif isinstance(target, PlusSliceTarget):
        _assign_plus_slice(context, target, value, span)
    elif isinstance(target, StructValue):
        _assign_struct(context, target, value, span)
    elif isinstance(target, HeaderValue):
        _assign_header(context, target, value, span)
    elif isinstance(target, HeaderElement):
        _assign_element(context, target, value, span)
    elif isinstance(target, StackValue):
        _assign_stack(context, target, value, span)
    elif isinstance(target, UnionValue):
        _assign_union(context, target, value, span)
    elif isinstance(target, ir.Const):
        return  # it has no bits
    elif isinstance(target, StackCursor):
        context.refuse(f"'{target.which}' of a stack cannot be assigned to as a whole", span)
    else:
        assert isinstance(target, UnionCursor | ir.UnionLastField)
        context.refuse("BMv2 cannot write to 'next' and 'last' of a stack of header unions", span)


def _assign_scalar(context: Context, target: ir.Expr, value: P4Value, span: Span | None) -> None:
    assert isinstance(value, ir.Expr)
    if isinstance(target.type, VarbitType):
        assert isinstance(target, ir.FieldRef)
        if not isinstance(value, ir.FieldRef):
            context.refuse("a varbit can only be copied from another varbit", span)
        context.emit(ir.Primitive("assign_VL", [target, value], span))
        return
    if value.type != target.type:
        value = build.convert(value, target.type)
    if value != target:
        context.emit(ir.Assign(target, value, span))


def _assign_slice(context: Context, target: SliceTarget, value: P4Value, span: Span | None) -> None:
    """a[h:l] = v becomes a = (a & ~mask) | (v << l)."""
    whole = target.target
    type_ = whole.type
    assert isinstance(type_, BitsType)
    assert isinstance(value, ir.Expr)
    width = target.high - target.low + 1
    unsigned = bits(type_.width)
    mask = ((1 << width) - 1) << target.low
    kept = build.binary("&", build.convert(whole, unsigned), build.constant(~mask, unsigned))
    part = build.convert(build.convert(value, bits(width)), unsigned)
    moved = build.binary("<<", part, build.constant(target.low, bits(32)))
    _assign_scalar(context, whole, build.convert(build.binary("|", kept, moved), type_), span)


def _assign_plus_slice(context: Context, target: PlusSliceTarget, value: P4Value, span: Span | None) -> None:
    whole = target.target
    type_ = whole.type
    assert isinstance(type_, BitsType)
    assert isinstance(value, ir.Expr)
    unsigned = bits(type_.width)
    ones = build.constant((1 << target.type.width) - 1, unsigned)
    mask = build.binary("<<", ones, target.low)
    kept = build.binary("&", build.convert(whole, unsigned), build.unary("~", mask))
    moved = build.binary("<<", build.convert(value, unsigned), target.low)
    _assign_scalar(context, whole, build.convert(build.binary("|", kept, moved), type_), span)


def _assign_struct(context: Context, target: StructValue, value: P4Value, span: Span | None) -> None:
    assert isinstance(value, StructValue)
    if value.type != target.type and target.type is not None:
        value = retyped(value, target.type)
        assert isinstance(value, StructValue)
    sources: list[P4Value] = [value.fields[name] for name in target.fields]
    targets = list(target.fields.values())
    if _order_matters(targets, sources):
        sources = [_copied(context, source, span) for source in sources]
    for part, source in zip(targets, sources, strict=True):
        assign(context, part, source, span)


def _copied(context: Context, value: P4Value, span: Span | None) -> P4Value:
    if isinstance(value, ir.Const):
        return value
    if isinstance(value, ir.Expr):
        return context.snapshot(value, span)
    if isinstance(value, StructValue):
        return StructValue(value.type, {name: _copied(context, part, span) for name, part in value.fields.items()})
    if isinstance(value, HeaderLiteral):
        if value.fields is None:
            return value
        return HeaderLiteral(value.type, {name: _copied(context, part, span) for name, part in value.fields.items()})
    assert isinstance(value, HeaderValue | StackValue | UnionValue | HeaderElement)
    type_ = value.stack.type.element if isinstance(value, HeaderElement) else value.type
    copy = context.temporary(type_)
    assign(context, copy, value, span)
    return copy


def _assign_header(context: Context, target: HeaderValue, value: P4Value, span: Span | None) -> None:
    if isinstance(value, StructValue):
        value = retyped(value, target.type)
    elif isinstance(value, StackCursor | UnionCursor):
        value = read_cursor(context, value, span)
    if isinstance(value, HeaderValue):
        if value.name != target.name:
            _copy_instance(context, "assign_header", target.name, value.name, "header", span)
    elif isinstance(value, HeaderLiteral):
        _assign_literal(context, target, value, span)
    elif isinstance(value, HeaderElement):
        for index, element in enumerate(value.stack.elements):
            with context.collecting() as code:
                _assign_header(context, target, element, span)
            _when_index(context, value, index, code, span)
    else:
        raise AssertionError(f"{type(value).__name__} is no header")


def read_cursor(context: Context, cursor: P4Value, where: ast.Node | Span | None) -> HeaderLiteral:
    """stack.last as a whole: its fields one by one, for BMv2 has no such operand."""
    if isinstance(cursor, UnionCursor):
        context.refuse(
            f"the header '{cursor.member}' in '{cursor.cursor.which}' of a stack of header unions cannot be used as a "
            "whole",
            where,
        )
    assert isinstance(cursor, StackCursor)
    element = cursor.stack.type.element
    if cursor.which == "next":
        context.refuse("the next element of a stack can be extracted into, not read", where)
    if not is_header(element):
        context.refuse("the last element of a stack of header unions cannot be read as a whole", where)
    assert isinstance(element, StructType)
    stack = cursor.stack.name
    return HeaderLiteral(element, fields_of(element, lambda path, scalar: ir.LastField(stack, path, scalar)))


def _assign_literal(context: Context, target: HeaderValue, value: HeaderLiteral, span: Span | None) -> None:
    header = ir.Reference("header", target.name)
    if value.fields is None:
        context.emit(ir.Primitive("remove_header", [header], span))
        return
    fields = value.fields
    own = places(target)
    if any(overlap(places(part), own) for part in fields.values()):
        fields = {name: _copied(context, part, span) for name, part in fields.items()}
    context.emit(ir.Primitive("add_header", [header], span))
    for name, part in fields.items():
        assign(context, target.fields[name], part, span)


def _assign_element(context: Context, target: HeaderElement, value: P4Value, span: Span | None) -> None:
    for index, element in enumerate(target.stack.elements):
        assert isinstance(element, HeaderValue)
        with context.collecting() as code:
            _assign_header(context, element, value, span)
        _when_index(context, target, index, code, span)


def _when_index(context: Context, element: HeaderElement, index: int, code: list[ir.Stmt], span: Span | None) -> None:
    if code:
        here = build.binary("==", element.index, build.constant(index, element.index.type))
        context.emit(ir.If(here, code, [], span))


def _assign_stack(context: Context, target: StackValue, value: P4Value, span: Span | None) -> None:
    if isinstance(value, StackValue):
        if value.name == target.name:
            return
        element = target.type.element
        union = isinstance(element, StructType) and element.kind == "header_union"
        name = "assign_union_stack" if union else "assign_header_stack"
        kind = "header_union_stack" if union else "header_stack"
        _copy_instance(context, name, target.name, value.name, kind, span)
        return
    assert isinstance(value, StructValue)
    parts = list(value.fields.values())
    if any(overlap(places(part), places(target)) for part in parts):
        parts = [_copied(context, retyped(part, target.type.element), span) for part in parts]
    for target_element, part in zip(target.elements, parts, strict=False):
        assign(context, target_element, part, span)


def _assign_union(context: Context, target: UnionValue, value: P4Value, span: Span | None) -> None:
    if isinstance(value, UnionValue):
        if value.name != target.name:
            _copy_instance(context, "assign_union", target.name, value.name, "header_union", span)
    elif isinstance(value, HeaderLiteral) and value.fields is None:
        for member in target.members.values():
            context.emit(ir.Primitive("remove_header", [ir.Reference("header", member.name)], span))
    else:
        read_cursor(context, value, span)


def _copy_instance(context: Context, name: str, target: str, source: str, kind: str, span: Span | None) -> None:
    context.emit(ir.Primitive(name, [ir.Reference(kind, target), ir.Reference(kind, source)], span))


def invalidate(context: Context, value: P4Value, span: Span | None) -> None:
    """Make every header in a value invalid (a fresh variable, an `out` argument)."""
    if isinstance(value, HeaderValue):
        context.emit(ir.Primitive("remove_header", [ir.Reference("header", value.name)], span))
    elif isinstance(value, StructValue):
        for part in value.fields.values():
            invalidate(context, part, span)
    elif isinstance(value, StackValue):
        for element in value.elements:
            invalidate(context, element, span)
    elif isinstance(value, UnionValue):
        for member in value.members.values():
            invalidate(context, member, span)


def _order_matters(targets: list[P4Value], sources: list[P4Value]) -> bool:
    """Whether a later source reads what an earlier assignment writes."""
    written: set[tuple[str, str | None]] = set()
    for target, source in zip(targets, sources, strict=True):
        if written and overlap(written, places(source)):
            return True
        written |= places(target)
    return False
