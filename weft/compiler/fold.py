"""Arithmetic on compile-time values with P4_16's semantics (specification, sections 8.5 to 8.9)."""

from __future__ import annotations

from collections.abc import Callable

from weft.compiler.budgets import WIDTH_BITS
from weft.compiler.types import BitsType, Type


class FoldError(Exception):
    """The operation has no value (division by zero and the like)."""


class TooLargeError(FoldError):
    """The value is beyond the compiler's budget."""


def wrap(value: int, type_: Type) -> int:
    """`value` truncated to a bit type, two's complement when signed; other types keep it."""
    if not isinstance(type_, BitsType):
        return value
    width = type_.width
    value &= (1 << width) - 1
    if type_.signed and width and value >> (width - 1):
        value -= 1 << width
    return value


def saturate(value: int, type_: Type) -> int:
    """`value` clamped to the range of a bit type."""
    if not isinstance(type_, BitsType):
        return value
    low, high = bounds(type_)
    return min(max(value, low), high)


def bounds(type_: BitsType) -> tuple[int, int]:
    """Least and greatest value of a bit type."""
    if type_.signed:
        return -(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1
    return 0, (1 << type_.width) - 1


def fold_binary(operator: str, type_: Type, left: int, right: int) -> int | bool:
    """`left operator right` where `type_` is the type of the left operand. Raises FoldError."""
    if operator in _COMPARISONS:
        return _COMPARISONS[operator](left, right)
    if operator in ("|+|", "|-|"):
        return saturate(left + right if operator == "|+|" else left - right, type_)
    if operator in ("/", "%"):
        return _divide(operator, type_, left, right)
    if operator in ("<<", ">>"):
        if right < 0:
            raise FoldError("shift by a negative amount")
        if operator == ">>":
            return left >> min(right, WIDTH_BITS)
        if isinstance(type_, BitsType):
            return wrap(left << min(right, type_.width), type_)
        if right > WIDTH_BITS:
            raise FoldError(f"shift by {right}, more than {WIDTH_BITS}")
        return _bounded(left << right)
    result = _ARITHMETIC[operator](left, right)
    return wrap(result, type_) if isinstance(type_, BitsType) else _bounded(result)


def fold_unary(operator: str, type_: Type, operand: int) -> int:
    """`operator operand` for `-`, `+` and `~`."""
    if operator == "-":
        return wrap(-operand, type_)
    if operator == "~":
        return wrap(~operand, type_)
    return operand


def fold_slice(value: int, high: int, low: int) -> int:
    """Bits high..low of a value."""
    return (value >> low) & ((1 << (high - low + 1)) - 1)


def fold_concatenation(left: int, right: int, right_width: int, type_: BitsType) -> int:
    """left ++ right, as a value of `type_`."""
    return wrap((left << right_width) | (right & ((1 << right_width) - 1)), type_)


def _bounded(value: int) -> int:
    """An unbounded integer that goes on growing would take all time and memory. Raises TooLargeError."""
    if value.bit_length() > WIDTH_BITS:
        raise TooLargeError(f"this constant has more than {WIDTH_BITS} bits")
    return value


def _divide(operator: str, type_: Type, left: int, right: int) -> int:
    if right == 0:
        raise FoldError("division by zero")
    if right < 0 or left < 0:
        raise FoldError(f"'{operator}' is defined for positive numbers only")
    return wrap(left // right if operator == "/" else left % right, type_)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
