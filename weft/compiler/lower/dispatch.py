"""Expressions and statements, given to the function for their kind (see `handlers`)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.ir import Const, Exit, Expr, Jump
from weft.compiler.lower import build
from weft.compiler.lower.context import Context
from weft.compiler.lower.sizes import shallow
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.values import P4Value, TextValue
from weft.compiler.types import bits

_GROWING = (ast.Unary, ast.Binary, ast.Ternary, ast.Cast, ast.Slice, ast.Call)


def evaluate(context: Context, expression: ast.Expression) -> P4Value:
    """The value of an expression; emits what it needs done first."""
    known = expression.value
    if known is not None and not isinstance(known, list | dict):
        return _known(context, expression, known)
    value = context.expressions[type(expression)](context, expression)
    if value is None:
        context.refuse("this call has no value", expression)
    if isinstance(expression, _GROWING) and isinstance(value, Expr):
        return shallow(context, value, expression)
    return value


def _known(context: Context, expression: ast.Expression, known: str | int) -> P4Value:
    if isinstance(known, str):
        return TextValue(known)
    type_ = context.type_of(expression)
    scalar = scalar_type(type_)
    if scalar is None:
        # An arbitrary-precision integer: wide enough for its value.
        scalar = bits(max(32, int(known).bit_length()), known < 0)
    return build.constant(known, scalar)


def evaluate_scalar(context: Context, expression: ast.Expression) -> Expr:
    """The value of a scalar expression."""
    value = evaluate(context, expression)
    if not isinstance(value, Expr):
        context.refuse("a bit, int or bool value is needed here", expression)
    return value


def evaluate_bound(context: Context, expression: ast.Expression) -> int:
    """A slice's bound, maybe from a constructor parameter."""
    value = evaluate(context, expression)
    assert isinstance(value, Const)
    return int(value.value)


def lower_statement(context: Context, statement: ast.Node) -> None:
    """One statement or local declaration."""
    context.statements[type(statement)](context, statement)


def lower_statements(context: Context, body: Sequence[ast.Node]) -> None:
    """Lower statements in the current frame; those after a jump are dropped."""
    for statement in body:
        try:
            lower_statement(context, statement)
        except Refused:
            # Reported; what follows may be wrong, too.
            continue
        if context.out and isinstance(context.out[-1], Jump | Exit):
            return
