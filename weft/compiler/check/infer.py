"""Typing of expressions: the dispatch (specification, section 8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import is_number
from weft.compiler.check.context import CheckContext
from weft.compiler.types import UNKNOWN, Type, strip_enum


def infer(context: CheckContext, expression: ast.Expression, expected: Type | None = None) -> Type:
    """Type an expression and fold it; `expected` guides literals that have no type of their own."""
    if expression.type is not None and not isinstance(expression, ast.ListExpression | ast.StructExpression):
        return expression.type
    handler = context.expressions.get(type(expression))
    if handler is None:
        return context.fail(expression, "this expression cannot stand here")
    type_ = handler(context, expression, expected)
    expression.type = type_
    return type_


def constant(context: CheckContext, expression: ast.Expression, what: str) -> int | None:
    """The value of an expression that must be a known integer; None after an error."""
    type_ = infer(context, expression)
    if type_ is UNKNOWN:
        return None
    if not is_number(strip_enum(type_)):
        context.error(f"{what} is a number, not '{type_}'", expression)
        return None
    if not isinstance(expression.value, int):
        context.error(f"{what} must be known at compile time", expression)
        return None
    return expression.value


def infer_operand(context: CheckContext, expression: ast.Expression, hint: Type | None = None) -> Type:
    """Infer an operand; a serializable enum counts as its underlying type."""
    return strip_enum(infer(context, expression, hint))
