"""Targets of assignments, and operands that are saved before later ones change them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.ir import Expr
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_bound, evaluate_scalar
from weft.compiler.lower.values import HeaderValue, P4Value, PlusSliceTarget, SliceTarget, StructValue
from weft.compiler.types import bits


def evaluate_target(context: Context, expression: ast.Expression) -> P4Value:
    """The target of an assignment; its indices are evaluated now."""
    if isinstance(expression, ast.Slice):
        base = evaluate_target(context, expression.base)
        if expression.plus and expression.high.value is None:
            low = context.simple(evaluate_scalar(context, expression.high))
            assert isinstance(base, Expr)
            return PlusSliceTarget(base, low, bits(expression.low.value))
        if expression.plus:
            low_bound = expression.high.value
            high = low_bound + expression.low.value - 1
        else:
            high, low_bound = (
                evaluate_bound(context, expression.high),
                evaluate_bound(context, expression.low),
            )
        if isinstance(base, SliceTarget):
            return SliceTarget(base.target, base.low + high, base.low + low_bound)
        assert isinstance(base, Expr)
        return SliceTarget(base, high, low_bound)
    return evaluate(context, expression)


def evaluate_frozen_target(context: Context, expression: ast.Expression) -> P4Value:
    """A target that later statements cannot move."""
    saved, context.freeze_indices = context.freeze_indices, True
    try:
        return evaluate_target(context, expression)
    finally:
        context.freeze_indices = saved


def read_target(target: P4Value) -> P4Value:
    """The value of something that can be written."""
    if isinstance(target, SliceTarget):
        return build.slice_of(target.target, target.high, target.low)
    return target


def evaluate_in_order(context: Context, expressions: Sequence[ast.Expression]) -> list[P4Value]:
    """Values of operands, left to right: an earlier one is saved when a later one has effects."""
    values: list[P4Value] = []
    for expression in expressions:
        with context.collecting() as before:
            value = evaluate(context, expression)
        if before:
            values = [save(context, earlier) for earlier in values]
            context.out += before
        values.append(value)
    return values


def save(context: Context, value: P4Value) -> P4Value:
    """A copy that later writes do not change."""
    if isinstance(value, Expr):
        return context.snapshot(value)
    if isinstance(value, StructValue):
        return StructValue(value.type, {name: save(context, part) for name, part in value.fields.items()})
    if isinstance(value, HeaderValue):
        copy = context.temporary(value.type)
        assign(context, copy, value, None)
        return copy
    return value
