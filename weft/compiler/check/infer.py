"""Typing of expressions: the dispatch (specification, section 8).

How each kind of expression is typed is a rule in a table by the node's class; `literals`, `names`, `members`,
`operators`, `indexing`, `casts` and `calls` register theirs. So no imports form a cycle although each rule types the
parts of its expression: rules import `infer`, and `infer` imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft.compiler import ast
from weft.compiler.check.allowed_types import is_number
from weft.compiler.check.context import CheckContext
from weft.compiler.types import UNKNOWN, Type, strip_enum

AnyExpression = TypeVar("AnyExpression", bound=ast.Expression)
Rule = Callable[[CheckContext, AnyExpression, Type | None], Type]
"""Types an expression and sets its `value` if it is known; the last argument is the type expected there, if any."""

_RULES: dict[type[ast.Expression], Rule[Any]] = {}


def typing_rule(kind: type[AnyExpression]) -> Callable[[Rule[AnyExpression]], Rule[AnyExpression]]:
    """Register the rule for a class of expressions."""

    def register(rule: Rule[AnyExpression]) -> Rule[AnyExpression]:
        _RULES[kind] = rule
        return rule

    return register


def infer(context: CheckContext, expression: ast.Expression, expected: Type | None = None) -> Type:
    """Type an expression and fold it; `expected` guides literals that have no type of their own."""
    if expression.type is not None and not isinstance(expression, ast.ListExpression | ast.StructExpression):
        return expression.type
    rule = _RULES.get(type(expression))
    if rule is None:
        return context.fail(expression, "this expression cannot stand here")
    type_: Type = rule(context, expression, expected)
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
