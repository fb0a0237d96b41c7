"""List, struct and header expressions."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import as_type, default_value
from weft.compiler.lower.targets import evaluate_in_order
from weft.compiler.lower.values import HeaderLiteral, P4Value, StructValue
from weft.compiler.types import ListType, StackType, StructType, TupleType


def evaluate_list(context: Context, expression: ast.ListExpression) -> P4Value:
    """{a, b} as the struct, header, tuple or stack that it is used as."""
    type_ = context.type_of(expression)
    values = evaluate_in_order(context, expression.elements)
    if isinstance(type_, StructType):
        names = list(type_.fields)
        parts = {name: as_type(context, value, type_.fields[name]) for name, value in zip(names, values, strict=False)}
        for name in names[len(values) :]:
            parts[name] = default_value(context, type_.fields[name], expression)
        if type_.kind == "header":
            return HeaderLiteral(type_, parts)
        return StructValue(type_, parts)
    if isinstance(type_, TupleType):
        typed = [as_type(context, value, inner) for value, inner in zip(values, type_.elements, strict=True)]
        return StructValue(type_, {str(index): value for index, value in enumerate(typed)})
    if isinstance(type_, StackType):
        return StructValue(type_, {str(index): value for index, value in enumerate(values)})
    assert isinstance(type_, ListType)
    return StructValue(None, {str(index): value for index, value in enumerate(values)})


def evaluate_struct(context: Context, expression: ast.StructExpression) -> P4Value:
    """{x = a, y = b} as the struct or header that it is used as."""
    type_ = context.type_of(expression)
    values = evaluate_in_order(context, [element.expression for element in expression.elements])
    given = {element.name: value for element, value in zip(expression.elements, values, strict=True)}
    if not isinstance(type_, StructType):
        return StructValue(None, given)
    parts = {}
    for name, inner in type_.fields.items():
        if name in given:
            parts[name] = as_type(context, given[name], inner)
        else:
            parts[name] = default_value(context, inner, expression)
    if type_.kind == "header":
        return HeaderLiteral(type_, parts)
    return StructValue(type_, parts)


def evaluate_default(context: Context, expression: ast.DefaultExpression) -> P4Value:
    """`...`, the default value of its type."""
    return default_value(context, context.type_of(expression), expression)


def evaluate_invalid_header(context: Context, expression: ast.InvalidHeader) -> P4Value:
    """{#}: an invalid header."""
    type_ = context.type_of(expression)
    assert isinstance(type_, StructType)
    return HeaderLiteral(type_, None)
