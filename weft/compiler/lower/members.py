"""Members of values: fields of structs and headers, `next` and `last` of stacks."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import ElementField, Expr, LastField, LastIndex, UnionLastField
from weft.compiler.lower import build
from weft.compiler.lower.context import Context
from weft.compiler.lower.storage import flat_fields, scalar_type
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    P4Value,
    StackCursor,
    StackValue,
    StructValue,
    UnionCursor,
    UnionValue,
)
from weft.compiler.types import StructType, Type, bits


def member_of(context: Context, base: P4Value, name: str, where: ast.Expression) -> P4Value:
    """base.name."""
    if isinstance(base, StructValue):
        return base.fields[name]
    if isinstance(base, HeaderValue):
        return base.fields[name]
    if isinstance(base, HeaderElement):
        return _element_field(context, base, name, where)
    if isinstance(base, HeaderLiteral):
        if base.fields is None:
            scalar = context.scalar_type_of(where)
            return build.constant(0, scalar or bits(1))
        return base.fields[name]
    if isinstance(base, UnionValue):
        return base.members[name]
    if isinstance(base, StackValue):
        if name in ("next", "last"):
            return StackCursor(base, name)
        if name == "lastIndex":
            return LastIndex(base.name, bits(32))
    if isinstance(base, StackCursor):
        element = base.stack.type.element
        if isinstance(element, StructType) and element.kind == "header_union":
            return UnionCursor(base, name)
        if base.which == "next":
            context.refuse("the next element of a stack can be extracted into, not read", where)
        return LastField(base.stack.name, name, _scalar_field(context, element, name, where))
    if isinstance(base, UnionCursor):
        element = base.cursor.stack.type.element
        assert isinstance(element, StructType)
        member = element.fields[base.member]
        scalar = _scalar_field(context, member, name, where)
        return UnionLastField(base.cursor.stack.name, base.member, name, scalar)
    context.refuse(f"'{name}' cannot be taken of this value", where)


def _scalar_field(context: Context, header: Type, name: str, where: ast.Expression) -> Type:
    assert isinstance(header, StructType)
    scalar = scalar_type(header.fields[name])
    if scalar is None:
        context.refuse("a struct within a stack's element cannot be used as a whole", where)
    return scalar


def _element_field(context: Context, base: HeaderElement, name: str, where: ast.Expression) -> Expr:
    element = base.stack.type.element
    assert isinstance(element, StructType)
    names = [field for field, _ in flat_fields(element)]
    if name not in names:
        context.refuse("a struct within a stack's element cannot be used as a whole", where)
    return ElementField(
        base.stack.name, base.index, names.index(name), _scalar_field(context, element, name, where)
    )
