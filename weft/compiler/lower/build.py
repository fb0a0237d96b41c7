"""Constructors of IR expressions that fold constants and drop what has no effect."""

from __future__ import annotations

from weft.compiler.fold import FoldError, fold_binary, fold_unary, wrap
from weft.compiler.ir import Binary, Choice, Const, Convert, Expr, Unary
from weft.compiler.types import BOOL, BitsType, Type, bits

TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)

# BMv2 computes shifts on unbounded integers, so a shift amount wider than this is bounded first.
SAFE_SHIFT_WIDTH = 8


def constant(value: int, type_: Type) -> Const:
    """A constant of a bit type (wrapped) or bool."""
    if type_ is BOOL:
        return TRUE if value else FALSE
    return Const(wrap(int(value), type_), type_)


def negate(operand: Expr) -> Expr:
    """!operand."""
    if isinstance(operand, Const):
        return FALSE if operand.value else TRUE
    if isinstance(operand, Unary) and operand.operator == "!":
        return operand.operand
    return Unary("!", operand, BOOL)


def both(left: Expr, right: Expr) -> Expr:
    """left && right."""
    if isinstance(left, Const):
        return right if left.value else FALSE
    if isinstance(right, Const):
        return left if right.value else FALSE
    return Binary("&&", left, right, BOOL)


def either(left: Expr, right: Expr) -> Expr:
    """left || right."""
    if isinstance(left, Const):
        return TRUE if left.value else right
    if isinstance(right, Const):
        return TRUE if right.value else left
    return Binary("||", left, right, BOOL)


def unary(operator: str, operand: Expr) -> Expr:
    """`-`, `~`, `+` or `!`."""
    if operator == "!":
        return negate(operand)
    if operator == "+":
        return operand
    if isinstance(operand, Const):
        return constant(fold_unary(operator, operand.type, operand.value), operand.type)
    return Unary(operator, operand, operand.type)


def binary(operator: str, left: Expr, right: Expr) -> Expr:
    """An arithmetic, bitwise, shift or comparison operator on scalars."""
    if operator == "&&":
        return both(left, right)
    if operator == "||":
        return either(left, right)
    comparison = operator in ("==", "!=", "<", "<=", ">", ">=")
    type_ = BOOL if comparison else left.type
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return constant(fold_binary(operator, left.type, left.value, right.value), type_)
        except FoldError:
            pass
    simpler = _identity(operator, left, right)
    if simpler is not None:
        return simpler
    if operator in ("<<", ">>"):
        return _shift(operator, left, right)
    return Binary(operator, left, right, type_)


def _identity(operator: str, left: Expr, right: Expr) -> Expr | None:
    """x+0, x*1, x&~0, x|0, x<<0 and their mirrors."""
    if isinstance(right, Const) and right.type is not BOOL:
        if right.value == 0 and operator in ("+", "-", "|", "^", "<<", ">>", "|+|", "|-|"):
            return left
        if right.value == 1 and operator in ("*", "/"):
            return left
        if operator == "&" and isinstance(left.type, BitsType) and right.value == wrap(-1, left.type):
            return left
        if operator in ("&", "*") and right.value == 0:
            return right
    if isinstance(left, Const) and left.type is not BOOL:
        if left.value == 0 and operator in ("+", "|", "^", "|+|"):
            return right
        if left.value == 1 and operator == "*":
            return right
        if operator in ("&", "*") and left.value == 0:
            return left
    return None


def _shift(operator: str, left: Expr, right: Expr) -> Expr:
    type_ = left.type
    assert isinstance(type_, BitsType)
    if isinstance(right, Const):
        if right.value >= type_.width:
            if operator == "<<" or not type_.signed:
                return constant(0, type_)
            return Binary(operator, left, constant(type_.width - 1, bits(32)), type_)
        return Binary(operator, left, right, type_)
    shifted = Binary(operator, left, right, type_)
    if not isinstance(right.type, BitsType) or right.type.width <= SAFE_SHIFT_WIDTH:
        return shifted
    limit = constant(type_.width, right.type)
    if limit.value != type_.width:
        return shifted
    beyond: Expr = constant(0, type_)
    if operator == ">>" and type_.signed:
        beyond = choice(Binary("<", left, constant(0, type_), BOOL), constant(-1, type_), beyond)
    return choice(Binary(">=", right, limit, BOOL), beyond, shifted)


def choice(condition: Expr, first: Expr, second: Expr) -> Expr:
    """condition ? first : second."""
    if isinstance(condition, Const):
        return first if condition.value else second
    if first == second:
        return first
    return Choice(condition, first, second, first.type)


def convert(operand: Expr, type_: Type) -> Expr:
    """(type) operand."""
    if operand.type == type_:
        return operand
    if isinstance(type_, BitsType) and type_.width == 0:
        return constant(0, type_)
    if isinstance(operand, Const):
        return constant(int(operand.value), type_)
    if type_ is BOOL:
        return Binary("!=", operand, constant(0, operand.type), BOOL)
    return Convert(operand, type_)


def slice_of(operand: Expr, high: int, low: int) -> Expr:
    """operand[high:low]."""
    result = bits(high - low + 1)
    type_ = operand.type
    assert isinstance(type_, BitsType)
    if type_.signed:
        operand = convert(operand, bits(type_.width))
    if low:
        operand = binary(">>", operand, constant(low, bits(32)))
    return convert(operand, result)


def concatenate(left: Expr, right: Expr, type_: Type) -> Expr:
    """left ++ right, of the given type."""
    assert isinstance(type_, BitsType)
    assert isinstance(right.type, BitsType)
    assert isinstance(left.type, BitsType)
    unsigned = bits(type_.width)
    high = convert(convert(left, bits(left.type.width)), unsigned)
    low = convert(convert(right, bits(right.type.width)), unsigned)
    shifted = binary("<<", high, constant(right.type.width, bits(32)))
    return convert(binary("|", shifted, low), type_)
