"""Operators: folded where they can be, with branches where an operand has effects."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Assign, Binary, Const, Expr, If
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import retyped
from weft.compiler.lower.dispatch import evaluate, evaluate_bound, evaluate_scalar
from weft.compiler.lower.equality import equal
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.targets import evaluate_in_order
from weft.compiler.lower.values import P4Value
from weft.compiler.types import BOOL, BitsType, bits


def evaluate_unary(context: Context, expression: ast.Unary) -> Expr:
    """An operator before its operand."""
    return build.unary(expression.operator, evaluate_scalar(context, expression.operand))


def evaluate_binary(context: Context, expression: ast.Binary) -> P4Value:
    """left operator right; && and || evaluate what is right only where it counts."""
    operator = expression.operator
    if operator in ("&&", "||"):
        return _short_circuit(context, expression)
    left, right = evaluate_in_order(context, [expression.left, expression.right])
    if operator in ("==", "!="):
        same = equal(context, left, right, expression)
        return same if operator == "==" else _inverse(same)
    return combine_operands(context, operator, left, right, expression)


def combine_operands(
    context: Context, operator: str, left: P4Value, right: P4Value, expression: ast.Expression
) -> Expr:
    """left operator right, for evaluated scalars; `expression` gives the result's type."""
    assert isinstance(left, Expr)
    assert isinstance(right, Expr)
    if operator == "++":
        type_ = context.scalar_type_of(expression)
        assert type_ is not None
        return build.concatenate(left, right, type_)
    if operator not in ("<<", ">>") and left.type != right.type:
        # Serializable enums and their underlying types, and integers typed by the other side.
        if isinstance(left, Const):
            left = build.convert(left, right.type)
        else:
            right = build.convert(right, left.type)
    return build.binary(operator, left, right)


def _short_circuit(context: Context, expression: ast.Binary) -> Expr:
    left = evaluate_scalar(context, expression.left)
    with context.collecting() as before:
        right = evaluate_scalar(context, expression.right)
    if not before:
        return build.binary(expression.operator, left, right)
    wanted = expression.operator == "&&"
    if isinstance(left, Const):
        if bool(left.value) != wanted:
            return left
        context.out += before
        return right
    result = context.scalar_temporary(BOOL)
    context.emit(Assign(result, left, expression.span))
    before.append(Assign(result, right, expression.span))
    context.emit(If(result if wanted else build.negate(result), before, [], expression.span))
    return result


def evaluate_ternary(context: Context, expression: ast.Ternary) -> P4Value:
    """condition ? first : second, of which one is evaluated."""
    condition = evaluate_scalar(context, expression.condition)
    if isinstance(condition, Const):
        return evaluate(context, expression.first if condition.value else expression.second)
    with context.collecting() as yes:
        first = evaluate(context, expression.first)
    with context.collecting() as no:
        second = evaluate(context, expression.second)
    if not yes and not no and isinstance(first, Expr) and isinstance(second, Expr):
        return build.choice(condition, first, build.convert(second, first.type))
    result = context.temporary(context.type_of(expression))
    for branch, value in ((yes, first), (no, second)):
        with context.collecting() as code:
            assign(context, result, value, expression.span)
        branch += code
    context.emit(If(condition, yes, no, expression.span))
    return result


def evaluate_cast(context: Context, expression: ast.Cast) -> P4Value:
    """(type) value."""
    target = context.type_of(expression)
    value = evaluate(context, expression.operand)
    scalar = scalar_type(target)
    if isinstance(value, Expr):
        if scalar is None:
            return value
        return build.convert(value, scalar)
    return retyped(value, target)


def evaluate_slice(context: Context, expression: ast.Slice) -> Expr:
    """base[high:low] or base[low+:width]."""
    base = evaluate_scalar(context, expression.base)
    if expression.plus:
        width = expression.low.value
        if expression.high.value is not None:
            return build.slice_of(base, expression.high.value + width - 1, expression.high.value)
        low = evaluate_scalar(context, expression.high)
        return build.convert(build.binary(">>", _unsigned(base), low), bits(width))
    high, low_bound = evaluate_bound(context, expression.high), evaluate_bound(context, expression.low)
    return build.slice_of(base, high, low_bound)


def _unsigned(value: Expr) -> Expr:
    if isinstance(value.type, BitsType) and value.type.signed:
        return build.convert(value, bits(value.type.width))
    return value


def _inverse(value: Expr) -> Expr:
    if isinstance(value, Binary) and value.operator == "==":
        return Binary("!=", value.left, value.right, BOOL)
    return build.negate(value)
