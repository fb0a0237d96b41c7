"""Typing of literals, lists and structs in braces (specification, sections 8.1, 8.13 to 8.16)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.coerce import coerce, element_types
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
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


def infer_integer(context: CheckContext, expression: ast.IntegerLiteral, expected: Type | None) -> Type:
    """An integer; one that does not fit its own width is truncated, with a warning."""
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


def infer_boolean(context: CheckContext, expression: ast.BooleanLiteral, expected: Type | None) -> Type:
    """`true` or `false`."""
    expression.value = expression.truth
    return BOOL


def infer_string(context: CheckContext, expression: ast.StringLiteral, expected: Type | None) -> Type:
    """A string."""
    expression.value = expression.text
    return STRING


def infer_invalid_header(context: CheckContext, expression: ast.InvalidHeader, expected: Type | None) -> Type:
    """`{#}`; where it stands decides its type."""
    return INVALID_HEADER


def infer_default(context: CheckContext, expression: ast.DefaultExpression, expected: Type | None) -> Type:
    """`default`, `_` or `...`; where it stands decides its type."""
    return DEFAULT


def infer_list(context: CheckContext, expression: ast.ListExpression, expected: Type | None) -> Type:
    """`{a, b}`: a tuple until it is converted to what is expected."""
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


def infer_struct_literal(context: CheckContext, expression: ast.StructExpression, expected: Type | None) -> Type:
    """`{name = a, …}`, with the struct's type in front or known from where it stands, or without a type."""
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
