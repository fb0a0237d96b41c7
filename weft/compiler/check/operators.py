"""Typing and folding of operators."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import TEXT_CHARACTERS, WIDTH_BITS, exceeded
from weft.compiler.check.allowed_types import is_number
from weft.compiler.check.coerce import coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer, infer_operand
from weft.compiler.fold import FoldError, TooLargeError, fold_binary, fold_concatenation, fold_unary
from weft.compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    STRING,
    UNKNOWN,
    AnonymousStructType,
    BitsType,
    EnumType,
    NewType,
    SetType,
    StackType,
    StructType,
    TupleType,
    Type,
    VarbitType,
    bits,
    is_header,
    strip_new,
)
from weft.compiler.warnings.kinds import Kind

_ARITHMETIC = frozenset(["+", "-", "*", "&", "|", "^", "|+|", "|-|", "/", "%"])
_ORDER = frozenset(["<", ">", "<=", ">="])


def infer_unary(context: CheckContext, expression: ast.Unary, expected: Type | None) -> Type:
    """`!`, `~`, `-`, `+`."""
    operator, operand = expression.operator, expression.operand
    type_ = infer_operand(context, operand, expected)
    if type_ is UNKNOWN:
        return UNKNOWN
    if operator == "!":
        if type_ is not BOOL:
            return context.fail(expression, f"'!' needs a bool, not '{type_}'", operand)
        if operand.value is not None:
            expression.value = not operand.value
        return BOOL
    if not is_number(type_) or (operator == "~" and type_ is INTEGER):
        return context.fail(expression, f"'{operator}' needs a bit or int type, not '{type_}'", operand)
    if operand.value is not None:
        expression.value = fold_unary(operator, type_, operand.value)
    return type_


def infer_binary(context: CheckContext, expression: ast.Binary, expected: Type | None) -> Type:
    """Any infix operator."""
    operator = expression.operator
    if operator in ("&&", "||"):
        return _logical(context, expression)
    if operator in ("<<", ">>"):
        return _shift(context, expression, expected)
    if operator == "++":
        return _concatenation(context, expression)
    if operator in ("&&&", ".."):
        return _key_set(context, expression, expected)
    if operator in ("==", "!="):
        return _equality(context, expression)
    left = infer_operand(context, expression.left, expected if operator in _ARITHMETIC else None)
    right = infer_operand(context, expression.right, expected if operator in _ARITHMETIC else None)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if not is_number(left) or not is_number(right):
        wrong = expression.right if is_number(left) else expression.left
        return context.fail(
            expression,
            f"'{operator}' needs bit or int types, not '{right if is_number(left) else left}'",
            wrong,
        )
    if not _both_positive(context, expression):
        return UNKNOWN
    type_ = _common_type(context, expression, left, right)
    if type_ is UNKNOWN:
        return UNKNOWN
    if operator in ("|+|", "|-|") and type_ is INTEGER:
        return context.fail(expression, f"'{operator}' needs a width: the type 'int' has no bounds")
    _check_division(context, expression, type_)
    _fold(context, expression, type_)
    return BOOL if operator in _ORDER else type_


def _check_division(context: CheckContext, expression: ast.Binary, type_: Type) -> None:
    if expression.operator in ("/", "%") and isinstance(type_, BitsType) and type_.signed:
        context.error(f"'{expression.operator}' is not defined on signed values ('{type_}')", expression)


def _both_positive(context: CheckContext, expression: ast.Binary) -> bool:
    """Division and modulo are defined on positive numbers only (specification, section 8.9)."""
    if expression.operator in ("/", "%"):
        for operand in (expression.left, expression.right):
            if operand.type is INTEGER and operand.value is not None and operand.value < 0:
                context.error(f"'{expression.operator}' is not defined on negative numbers", operand)
                return False
    return True


def _common_type(context: CheckContext, expression: ast.Binary, left: Type, right: Type) -> Type:
    """Bring both operands to one numeric type."""
    if left == right:
        return left
    if left is INTEGER:
        return right if coerce(context, expression.left, right) else UNKNOWN
    if right is INTEGER:
        return left if coerce(context, expression.right, left) else UNKNOWN
    return context.fail(
        expression,
        f"'{expression.operator}' needs operands of one type, found '{left}' and '{right}'; cast one of them",
    )


def _fold(context: CheckContext, expression: ast.Binary, type_: Type) -> None:
    left, right = expression.left.value, expression.right.value
    if right == 0 and expression.operator in ("/", "%"):
        context.error("division by zero", expression.right)
        return
    if left is None or right is None:
        return
    try:
        expression.value = fold_binary(expression.operator, type_, left, right)
    except TooLargeError as error:
        exceeded(context.diagnostics, str(error), expression.span)
    except FoldError as error:
        context.error(str(error), expression)


def _logical(context: CheckContext, expression: ast.Binary) -> Type:
    for operand in (expression.left, expression.right):
        type_ = infer(context, operand)
        if type_ is not BOOL and type_ is not UNKNOWN:
            context.error(f"'{expression.operator}' needs bools, not '{type_}'", operand)
            return UNKNOWN
    left, right = expression.left.value, expression.right.value
    if expression.operator == "&&":
        if left is False or (left is True and right is not None):
            expression.value = bool(left and right)
    elif left is True or (left is False and right is not None):
        expression.value = bool(left or right)
    return BOOL


def _shift(context: CheckContext, expression: ast.Binary, expected: Type | None) -> Type:
    left = infer_operand(context, expression.left, expected)
    right = infer_operand(context, expression.right)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if not is_number(left):
        return context.fail(
            expression, f"'{expression.operator}' needs a bit or int type, not '{left}'", expression.left
        )
    signed = isinstance(right, BitsType) and right.signed and expression.right.value is None
    if not is_number(right) or signed:
        return context.fail(
            expression, f"a shift amount is of type bit<…> or a constant, not '{right}'", expression.right
        )
    if expression.right.value is not None and expression.right.value < 0:
        return context.fail(expression, f"shift by the negative amount {expression.right.value}", expression.right)
    if left is INTEGER and expression.left.value is not None and expression.right.value is None:
        return context.fail(
            expression, "the width of the shifted constant is not known here; write it as a sized literal",
            expression.left,
        )  # fmt: skip
    _fold(context, expression, left)
    return left


def _concatenation(context: CheckContext, expression: ast.Binary) -> Type:
    left, right = infer_operand(context, expression.left), infer_operand(context, expression.right)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if left is STRING and right is STRING:
        if expression.left.value is not None and expression.right.value is not None:
            expression.value = expression.left.value + expression.right.value
            if len(expression.value) > TEXT_CHARACTERS:
                exceeded(
                    context.diagnostics,
                    f"this string has more than {TEXT_CHARACTERS} characters",
                    expression.span,
                )
        return STRING
    for operand, type_ in ((expression.left, left), (expression.right, right)):
        if not isinstance(type_, BitsType):
            return context.fail(expression, f"'++' needs operands of known width, not '{type_}'", operand)
    assert isinstance(left, BitsType)
    assert isinstance(right, BitsType)
    if left.width + right.width > WIDTH_BITS:
        return context.fail(expression, f"this has {left.width + right.width} bits, more than {WIDTH_BITS}")
    type_ = bits(left.width + right.width, left.signed)
    if expression.left.value is not None and expression.right.value is not None:
        expression.value = fold_concatenation(expression.left.value, expression.right.value, right.width, type_)
    return type_


def _key_set(context: CheckContext, expression: ast.Binary, expected: Type | None) -> Type:
    hint = expected.element if isinstance(expected, SetType) else expected
    left = infer_operand(context, expression.left, hint)
    right = infer_operand(context, expression.right, hint)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if hint is not None and isinstance(hint, BitsType):
        if left is INTEGER:
            coerce(context, expression.left, hint)
            left = hint
        if right is INTEGER:
            coerce(context, expression.right, hint)
            right = hint
    if not is_number(left) or not is_number(right):
        return context.fail(expression, f"'{expression.operator}' needs bit or int types, not '{left}', '{right}'")
    type_ = _common_type(context, expression, left, right)
    low, high = expression.left.value, expression.right.value
    if expression.operator == ".." and low is not None and high is not None and low > high:
        context.warning(f"the range {low}..{high} is empty", expression, Kind.MISMATCH)
    return UNKNOWN if type_ is UNKNOWN else SetType(type_)


def _equality(context: CheckContext, expression: ast.Binary) -> Type:
    left = infer_operand(context, expression.left)
    right = infer_operand(context, expression.right, left)
    if left is UNKNOWN or right is UNKNOWN:
        return BOOL
    literals = (ast.ListExpression, ast.StructExpression, ast.InvalidHeader)
    if left != right:
        if is_number(left) and is_number(right):
            if _common_type(context, expression, left, right) is UNKNOWN:
                return UNKNOWN
            left = expression.left.type or left
        elif INTEGER in (left, right) and isinstance(strip_new(left if right is INTEGER else right), BitsType):
            # One operand is a number without a width, the other a value of a `type`.
            number, left = (expression.right, left) if right is INTEGER else (expression.left, right)
            coerce(context, number, left)
        elif isinstance(expression.right, literals) and not isinstance(right, StructType):
            if not coerce(context, expression.right, left):
                return UNKNOWN
        elif isinstance(expression.left, literals):
            if not coerce(context, expression.left, right):
                return UNKNOWN
        else:
            return context.fail(expression, f"cannot compare '{left}' with '{right}'")
    if not _comparable(left):
        return context.fail(expression, f"'{expression.operator}' is not defined on '{left}'")
    left_value, right_value = expression.left.value, expression.right.value
    known = (int, str, list, dict)
    if isinstance(left_value, known) and isinstance(right_value, known) and not is_header(left):
        expression.value = (left_value == right_value) == (expression.operator == "==")
    return BOOL


def _comparable(type_: Type) -> bool:
    if isinstance(type_, StructType):
        return all(_comparable(member) for member in type_.fields.values())
    if isinstance(type_, TupleType):
        return all(_comparable(member) for member in type_.elements)
    if isinstance(type_, StackType):
        return _comparable(type_.element)
    return isinstance(type_, BitsType | EnumType | NewType | VarbitType | AnonymousStructType) or type_ in (
        BOOL,
        ERROR,
        STRING,
        INTEGER,
    )


def infer_ternary(context: CheckContext, expression: ast.Ternary, expected: Type | None) -> Type:
    """condition ? first : second."""
    condition = infer(context, expression.condition)
    if condition is not BOOL and condition is not UNKNOWN:
        context.error(f"the condition of '?:' is a bool, not '{condition}'", expression.condition)
    first = infer(context, expression.first, expected)
    second = infer(context, expression.second, expected)
    if first is UNKNOWN or second is UNKNOWN:
        return UNKNOWN
    type_ = first
    if first != second:
        target = second if first is INTEGER else first
        if isinstance(expected, BitsType | StructType) and isinstance(first, TupleType | AnonymousStructType):
            target = expected
        if not coerce(context, expression.first, target) or not coerce(context, expression.second, target):
            return UNKNOWN
        type_ = target
    elif first is INTEGER and expression.condition.value is None:
        if expected is not None and isinstance(strip_new(expected), BitsType):
            coerce(context, expression.first, expected)
            coerce(context, expression.second, expected)
            type_ = expected
        else:
            return context.fail(
                expression, "the width of this '?:' is not known; write its constants as sized literals"
            )
    if expression.condition.value is not None:
        chosen = expression.first if expression.condition.value else expression.second
        expression.value = chosen.value
    return type_
