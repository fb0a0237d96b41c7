"""Typing of subscripts and slices (specification, sections 8.6, 8.18)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import is_number
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import constant, infer, infer_operand
from weft.compiler.fold import fold_slice
from weft.compiler.types import (
    INTEGER,
    UNKNOWN,
    BitsType,
    ListType,
    StackType,
    TupleType,
    Type,
    bits,
    strip_enum,
)


def infer_index(context: CheckContext, expression: ast.Index, expected: Type | None) -> Type:
    """`base[index]`: an element of a stack, an array, a list or a tuple."""
    base = infer(context, expression.base)
    index = infer(context, expression.index)
    if base is UNKNOWN or index is UNKNOWN:
        return UNKNOWN
    if isinstance(base, TupleType):
        position = constant(context, expression.index, "the index of a tuple")
        if position is None:
            return UNKNOWN
        if not 0 <= position < len(base.elements):
            return context.fail(expression, f"index {position} is out of the range of '{base}'", expression.index)
        if isinstance(expression.base.value, list):
            expression.value = expression.base.value[position]
        return base.elements[position]
    if not is_number(strip_enum(index)):
        return context.fail(expression, f"an index is a number, not '{index}'", expression.index)
    if isinstance(base, ListType):
        return base.element
    if not isinstance(base, StackType):
        return context.fail(expression, f"only header stacks and tuples have an index, not '{base}'", expression.base)
    value = expression.index.value
    if value is not None and not 0 <= value < base.size:
        return context.fail(
            expression, f"index {value} is out of the range of '{base}' (valid: 0 to {base.size - 1})",
            expression.index,
        )  # fmt: skip
    return base.element


def infer_slice(context: CheckContext, expression: ast.Slice, expected: Type | None) -> Type:
    """base[high:low] and base[low +: width]."""
    base = infer_operand(context, expression.base)
    first_is_constant = not expression.plus
    high = constant(context, expression.high, "a slice's bound") if first_is_constant else None
    low = constant(context, expression.low, "a slice's bound" if first_is_constant else "a slice's width")
    if base is UNKNOWN or low is None:
        return UNKNOWN
    if expression.plus:
        return _plus_slice(context, expression, base, low)
    if high is None:
        return UNKNOWN
    if high < low or low < 0:
        return context.fail(expression, f"the slice [{high}:{low}] is empty or negative")
    if base is INTEGER:
        if expression.base.value is not None:
            expression.value = fold_slice(expression.base.value, high, low)
        return bits(high - low + 1)
    if not isinstance(base, BitsType):
        return context.fail(expression, f"a slice needs a bit or int type, not '{base}'", expression.base)
    if high >= base.width:
        return context.fail(expression, f"bit {high} is out of the range of '{base}' (valid: 0 to {base.width - 1})")
    if expression.base.value is not None:
        expression.value = fold_slice(expression.base.value, high, low)
    return bits(high - low + 1)


def _plus_slice(context: CheckContext, expression: ast.Slice, base: Type, width: int) -> Type:
    low = infer_operand(context, expression.high)
    if low is UNKNOWN:
        return UNKNOWN
    if not isinstance(base, BitsType) or not is_number(low):
        return context.fail(expression, f"a slice needs a bit type and a number, not '{base}' and '{low}'")
    if not 1 <= width <= base.width:
        return context.fail(expression, f"a slice of {width} bits is out of the range of '{base}'")
    start = expression.high.value
    if start is not None:
        if not 0 <= start <= base.width - width:
            return context.fail(expression, f"bits {start + width - 1}:{start} are out of the range of '{base}'")
        if expression.base.value is not None:
            expression.value = fold_slice(expression.base.value, start + width - 1, start)
    return bits(width)
