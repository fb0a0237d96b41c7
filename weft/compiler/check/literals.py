"""Typing of literals, lists and structs in braces (specification, sections 8.1, 8.13 to 8.16)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import coerce, element_types
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer, typing_rule
from weft.compiler.check.type_nodes import resolve
from weft.compiler.fold import wrap
from weft.compiler.types import (
    BOOL,
    DEFAULT,
    INTEGER,
    INVALID_HEADER,
    STRING,
    UNKNOWN,
    AnonymousStructType,
    StructType,
    TupleType,
    Type,
    bits,
)
from weft.compiler.warnings.kinds import Kind


@typing_rule(ast.IntegerLiteral)
def _integer(context: CheckContext, expression: ast.IntegerLiteral, expected: Type | None) -> Type:
    if expression.width is None:
        expression.value = expression.number
        return INTEGER
    if expression.width < (2 if expression.signed else 1):
        return context.fail(expression, f"a literal of {expression.width} bits is not possible")
    type_ = bits(expression.width, expression.signed)
    value = wrap(expression.number, type_)
    if value != expression.number and not (expression.signed and expression.number < 1 << expression.width):
        context.warning(
            f"the value {expression.number} does not fit '{type_}' and is truncated to {value}",
            expression,
            Kind.MISMATCH,
        )
    expression.value = value
    return type_


@typing_rule(ast.BooleanLiteral)
def _boolean(context: CheckContext, expression: ast.BooleanLiteral, expected: Type | None) -> Type:
    expression.value = expression.truth
    return BOOL


@typing_rule(ast.StringLiteral)
def _string(context: CheckContext, expression: ast.StringLiteral, expected: Type | None) -> Type:
    expression.value = expression.text
    return STRING


@typing_rule(ast.InvalidHeader)
def _invalid_header(context: CheckContext, expression: ast.InvalidHeader, expected: Type | None) -> Type:
    return INVALID_HEADER


@typing_rule(ast.DefaultExpression)
def _default(context: CheckContext, expression: ast.DefaultExpression, expected: Type | None) -> Type:
    return DEFAULT


@typing_rule(ast.ListExpression)
def _list(context: CheckContext, expression: ast.ListExpression, expected: Type | None) -> Type:
    count = len(expression.elements)
    wanted = element_types(expected, count, expression.rest) if expected is not None else None
    elements = []
    for index, element in enumerate(expression.elements):
        elements.append(infer(context, element, wanted[index] if wanted else None))
    values = [element.value for element in expression.elements]
    if all(value is not None for value in values):
        expression.value = values
    if UNKNOWN in elements:
        return UNKNOWN
    return TupleType(tuple(elements))


@typing_rule(ast.StructExpression)
def _struct_literal(context: CheckContext, expression: ast.StructExpression, expected: Type | None) -> Type:
    target = resolve(context, expression.target) if expression.target is not None else expected
    fields = target.fields if isinstance(target, StructType) else {}
    types: list[tuple[str, Type]] = []
    seen: set[str] = set()
    for element in expression.elements:
        if element.name in seen:
            context.error(f"field '{element.name}' is given twice", element)
        seen.add(element.name)
        types.append((element.name, infer(context, element.expression, fields.get(element.name))))
    values = {element.name: element.expression.value for element in expression.elements}
    if all(value is not None for value in values.values()):
        expression.value = values
    anonymous = AnonymousStructType(tuple(types))
    if expression.target is None:
        return anonymous
    expression.type = anonymous
    if target is not None and target is not UNKNOWN:
        coerce(context, expression, target)
    return target or UNKNOWN
