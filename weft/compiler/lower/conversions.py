"""Values seen as another type: parts of aggregates, and what `...` stands for."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Expr
from weft.compiler.lower import build
from weft.compiler.lower.context import Context
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.values import HeaderLiteral, P4Value, StructValue
from weft.compiler.types import INTEGER, STRING, BitsType, StackType, StructType, TupleType, Type


def retyped(value: P4Value, target: Type) -> P4Value:
    """A list or struct value seen as another struct type."""
    if isinstance(target, StructType) and target.kind == "header" and isinstance(value, StructValue):
        names = list(target.fields)
        return HeaderLiteral(target, dict(zip(names, value.fields.values(), strict=False)))
    if isinstance(target, StructType | TupleType) and isinstance(value, StructValue):
        names = [name for name, _ in member_types(target)]
        parts = value.fields
        if set(names) == set(parts):
            return StructValue(target, {name: parts[name] for name in names})
        return StructValue(target, dict(zip(names, parts.values(), strict=False)))
    return value


def as_type(context: Context, value: P4Value, type_: Type) -> P4Value:
    """A part of an aggregate converted to the wanted type."""
    type_ = context.frame.type(type_)
    if isinstance(value, Expr):
        scalar = scalar_type(type_)
        if scalar is not None and isinstance(scalar, BitsType) and value.type != scalar:
            return build.convert(value, scalar)
        return value
    if type_ is INTEGER or type_ is STRING:
        return value
    return retyped(value, type_)


def default_value(context: Context, type_: Type, where: ast.Node) -> P4Value:
    """The value `...` stands for (specification, section 7.3): zeros, false, invalid headers."""
    type_ = context.frame.type(type_)
    scalar = scalar_type(type_)
    if scalar is not None:
        return build.constant(0, scalar)
    if isinstance(type_, StructType):
        if type_.kind != "struct":
            return HeaderLiteral(type_, None)
        return StructValue(type_, {name: default_value(context, inner, where) for name, inner in type_.fields.items()})
    if isinstance(type_, TupleType):
        parts = {str(index): default_value(context, inner, where) for index, inner in enumerate(type_.elements)}
        return StructValue(type_, parts)
    assert isinstance(type_, StackType)
    element = default_value(context, type_.element, where)
    return StructValue(type_, {str(index): element for index in range(type_.size)})
