"""Members of values: fields of structs and headers, `next` and `last` of stacks."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import ElementField, LastField, LastIndex, UnionLastField
from weft.compiler.lower import values
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import default_value
from weft.compiler.lower.storage import fields_of, flat_fields
from weft.compiler.types import StructType, bits


def member_of(context: Context, base: values.P4Value, name: str, where: ast.Expression) -> values.P4Value:
    """base.name."""
    if isinstance(base, values.StructValue):
        return base.fields[name]
    if isinstance(base, values.HeaderValue):
        return base.fields[name]
    if isinstance(base, values.HeaderElement):
        return element_fields(base)[name]
    if isinstance(base, values.HeaderLiteral):
        if base.fields is None:
            return default_value(context, base.type.fields[name], where)
        return base.fields[name]
    if isinstance(base, values.UnionValue):
        return base.members[name]
    if isinstance(base, values.StackValue):
        if name in ("next", "last"):
            return values.StackCursor(base, name)
        if name == "lastIndex":
            return LastIndex(base.name, bits(32))
    if isinstance(base, values.StackCursor):
        element = base.stack.type.element
        assert isinstance(element, StructType)
        if element.kind == "header_union":
            return values.UnionCursor(base, name)
        if base.which == "next":
            context.refuse("the next element of a stack can be extracted into, not read", where)
        stack = base.stack.name
        return fields_of(element, lambda path, scalar: LastField(stack, path, scalar))[name]
    assert isinstance(base, values.UnionCursor)
    union = base.cursor.stack.type.element
    assert isinstance(union, StructType)
    header, member, stack = union.fields[base.member], base.member, base.cursor.stack.name
    assert isinstance(header, StructType)
    return fields_of(header, lambda path, scalar: UnionLastField(stack, member, path, scalar))[name]


def element_fields(element: values.HeaderElement) -> dict[str, values.P4Value]:
    """The fields of stack[index], by name."""
    header = element.stack.type.element
    assert isinstance(header, StructType)
    places = {path: place for place, (path, _) in enumerate(flat_fields(header))}
    stack, index = element.stack.name, element.index
    return fields_of(header, lambda path, scalar: ElementField(stack, index, places[path], scalar))
