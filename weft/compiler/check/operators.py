"""Typing and folding of operators."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import TEXT_CHARACTERS, WIDTH_BITS, exceeded
from weft.compiler.check.coerce import Coercion
from weft.compiler.fold import (
    FoldError,
    TooLargeError,
    fold_binary,
    fold_concatenation,
    fold_slice,
    fold_unary,
)
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
)
from weft.compiler.warnings.kinds import Kind

_ARITHMETIC = frozenset(["+", "-", "*", "&", "|", "^", "|+|", "|-|", "/", "%"])
_ORDER = frozenset(["<", ">", "<=", ">="])


def is_number(type_: Type) -> bool:
    """Whether arithmetic is defined on it."""
    return isinstance(type_, BitsType) or type_ is INTEGER


class Operators(Coercion):
    """Unary, binary, ternary operators and slices."""

    def _operand(self, expression: ast.Expression, hint: Type | None = None) -> Type:
        """Infer an operand; a serializable enum counts as its underlying type."""
        type_ = self.infer(expression, hint)
        if isinstance(type_, EnumType) and type_.underlying is not None:
            return type_.underlying
        return type_

    def infer_unary(self, expression: ast.Unary, expected: Type | None) -> Type:
        """`!`, `~`, `-`, `+`."""
        operator, operand = expression.operator, expression.operand
        type_ = self._operand(operand, expected)
        if type_ is UNKNOWN:
            return UNKNOWN
        if operator == "!":
            if type_ is not BOOL:
                return self.fail(expression, f"'!' needs a bool, not '{type_}'", operand)
            if operand.value is not None:
                expression.value = not operand.value
            return BOOL
        if not is_number(type_) or (operator == "~" and type_ is INTEGER):
            return self.fail(expression, f"'{operator}' needs a bit or int type, not '{type_}'", operand)
        if operand.value is not None:
            expression.value = fold_unary(operator, type_, operand.value)
        return type_

    def infer_binary(self, expression: ast.Binary, expected: Type | None) -> Type:
        """Any infix operator."""
        operator = expression.operator
        if operator in ("&&", "||"):
            return self._logical(expression)
        if operator in ("<<", ">>"):
            return self._shift(expression, expected)
        if operator == "++":
            return self._concatenation(expression)
        if operator in ("&&&", ".."):
            return self._set(expression, expected)
        if operator in ("==", "!="):
            return self._equality(expression)
        left = self._operand(expression.left, expected if operator in _ARITHMETIC else None)
        right = self._operand(expression.right, expected if operator in _ARITHMETIC else None)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if not is_number(left) or not is_number(right):
            wrong = expression.right if is_number(left) else expression.left
            return self.fail(
                expression,
                f"'{operator}' needs bit or int types, not '{right if is_number(left) else left}'",
                wrong,
            )
        if not self._both_positive(expression):
            return UNKNOWN
        type_ = self._same(expression, left, right)
        if type_ is UNKNOWN:
            return UNKNOWN
        if operator in ("|+|", "|-|") and type_ is INTEGER:
            return self.fail(expression, f"'{operator}' needs a width: the type 'int' has no bounds")
        self._check_division(expression, type_)
        self._fold(expression, type_)
        return BOOL if operator in _ORDER else type_

    def _check_division(self, expression: ast.Binary, type_: Type) -> None:
        if expression.operator in ("/", "%") and isinstance(type_, BitsType) and type_.signed:
            self.error(f"'{expression.operator}' is not defined on signed values ('{type_}')", expression)

    def _both_positive(self, expression: ast.Binary) -> bool:
        """Division and modulo are defined on positive numbers only (specification, section 8.9)."""
        if expression.operator in ("/", "%"):
            for operand in (expression.left, expression.right):
                if operand.type is INTEGER and operand.value is not None and operand.value < 0:
                    self.error(f"'{expression.operator}' is not defined on negative numbers", operand)
                    return False
        return True

    def _same(self, expression: ast.Binary, left: Type, right: Type) -> Type:
        """Bring both operands to one numeric type."""
        if left == right:
            return left
        if left is INTEGER:
            return right if self.coerce(expression.left, right) else UNKNOWN
        if right is INTEGER:
            return left if self.coerce(expression.right, left) else UNKNOWN
        return self.fail(
            expression,
            f"'{expression.operator}' needs operands of one type, found '{left}' and '{right}'; cast one of them",
        )

    def _fold(self, expression: ast.Binary, type_: Type) -> None:
        left, right = expression.left.value, expression.right.value
        if right == 0 and expression.operator in ("/", "%"):
            self.error("division by zero", expression.right)
            return
        if left is None or right is None:
            return
        try:
            expression.value = fold_binary(expression.operator, type_, left, right)
        except TooLargeError as error:
            exceeded(self.diagnostics, str(error), expression.span)
        except FoldError as error:
            self.error(str(error), expression)

    def _logical(self, expression: ast.Binary) -> Type:
        for operand in (expression.left, expression.right):
            type_ = self.infer(operand)
            if type_ is not BOOL and type_ is not UNKNOWN:
                self.error(f"'{expression.operator}' needs bools, not '{type_}'", operand)
                return UNKNOWN
        left, right = expression.left.value, expression.right.value
        if expression.operator == "&&":
            if left is False or (left is True and right is not None):
                expression.value = bool(left and right)
        elif left is True or (left is False and right is not None):
            expression.value = bool(left or right)
        return BOOL

    def _shift(self, expression: ast.Binary, expected: Type | None) -> Type:
        left = self._operand(expression.left, expected)
        right = self._operand(expression.right)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if not is_number(left):
            return self.fail(
                expression, f"'{expression.operator}' needs a bit or int type, not '{left}'", expression.left
            )
        signed = isinstance(right, BitsType) and right.signed and expression.right.value is None
        if not is_number(right) or signed:
            return self.fail(
                expression, f"a shift amount is of type bit<…> or a constant, not '{right}'", expression.right
            )
        if expression.right.value is not None and expression.right.value < 0:
            return self.fail(
                expression, f"shift by the negative amount {expression.right.value}", expression.right
            )
        if left is INTEGER and expression.left.value is not None and expression.right.value is None:
            return self.fail(
                expression, "the width of the shifted constant is not known here; write it as a sized literal",
                expression.left,
            )  # fmt: skip
        self._fold(expression, left)
        return left

    def _concatenation(self, expression: ast.Binary) -> Type:
        left, right = self._operand(expression.left), self._operand(expression.right)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if left is STRING and right is STRING:
            if expression.left.value is not None and expression.right.value is not None:
                expression.value = expression.left.value + expression.right.value
                if len(expression.value) > TEXT_CHARACTERS:
                    exceeded(
                        self.diagnostics,
                        f"this string has more than {TEXT_CHARACTERS} characters",
                        expression.span,
                    )
            return STRING
        for operand, type_ in ((expression.left, left), (expression.right, right)):
            if not isinstance(type_, BitsType):
                return self.fail(expression, f"'++' needs operands of known width, not '{type_}'", operand)
        assert isinstance(left, BitsType)
        assert isinstance(right, BitsType)
        if left.width + right.width > WIDTH_BITS:
            return self.fail(expression, f"this has {left.width + right.width} bits, more than {WIDTH_BITS}")
        type_ = bits(left.width + right.width, left.signed)
        if expression.left.value is not None and expression.right.value is not None:
            expression.value = fold_concatenation(
                expression.left.value, expression.right.value, right.width, type_
            )
        return type_

    def _set(self, expression: ast.Binary, expected: Type | None) -> Type:
        hint = expected.element if isinstance(expected, SetType) else expected
        left = self._operand(expression.left, hint)
        right = self._operand(expression.right, hint)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if hint is not None and isinstance(hint, BitsType):
            if left is INTEGER:
                self.coerce(expression.left, hint)
                left = hint
            if right is INTEGER:
                self.coerce(expression.right, hint)
                right = hint
        if not is_number(left) or not is_number(right):
            return self.fail(
                expression, f"'{expression.operator}' needs bit or int types, not '{left}', '{right}'"
            )
        type_ = self._same(expression, left, right)
        low, high = expression.left.value, expression.right.value
        if expression.operator == ".." and low is not None and high is not None and low > high:
            self.warning(f"the range {low}..{high} is empty", expression, Kind.MISMATCH)
        return UNKNOWN if type_ is UNKNOWN else SetType(type_)

    def _equality(self, expression: ast.Binary) -> Type:
        left = self._operand(expression.left)
        right = self._operand(expression.right, left)
        if left is UNKNOWN or right is UNKNOWN:
            return BOOL
        literals = (ast.ListExpression, ast.StructExpression, ast.InvalidHeader)
        if left != right:
            if is_number(left) and is_number(right):
                if self._same(expression, left, right) is UNKNOWN:
                    return UNKNOWN
                left = expression.left.type or left
            elif isinstance(expression.right, literals) and not isinstance(right, StructType):
                if not self.coerce(expression.right, left):
                    return UNKNOWN
            elif isinstance(expression.left, literals):
                if not self.coerce(expression.left, right):
                    return UNKNOWN
            else:
                return self.fail(expression, f"cannot compare '{left}' with '{right}'")
        if not _comparable(left):
            return self.fail(expression, f"'{expression.operator}' is not defined on '{left}'")
        left_value, right_value = expression.left.value, expression.right.value
        known = (int, str, list, dict)
        if isinstance(left_value, known) and isinstance(right_value, known) and not is_header(left):
            expression.value = (left_value == right_value) == (expression.operator == "==")
        return BOOL

    def infer_ternary(self, expression: ast.Ternary, expected: Type | None) -> Type:
        """condition ? first : second."""
        condition = self.infer(expression.condition)
        if condition is not BOOL and condition is not UNKNOWN:
            self.error(f"the condition of '?:' is a bool, not '{condition}'", expression.condition)
        first = self.infer(expression.first, expected)
        second = self.infer(expression.second, expected)
        if first is UNKNOWN or second is UNKNOWN:
            return UNKNOWN
        type_ = first
        if first != second:
            target = second if first is INTEGER else first
            if isinstance(expected, BitsType | StructType) and isinstance(
                first, TupleType | AnonymousStructType
            ):
                target = expected
            if not self.coerce(expression.first, target) or not self.coerce(expression.second, target):
                return UNKNOWN
            type_ = target
        elif first is INTEGER and expression.condition.value is None:
            if isinstance(expected, BitsType):
                self.coerce(expression.first, expected)
                self.coerce(expression.second, expected)
                type_ = expected
            else:
                return self.fail(
                    expression, "the width of this '?:' is not known; write its constants as sized literals"
                )
        if expression.condition.value is not None:
            chosen = expression.first if expression.condition.value else expression.second
            expression.value = chosen.value
        return type_

    def infer_slice(self, expression: ast.Slice) -> Type:
        """base[high:low] and base[low +: width]."""
        base = self._operand(expression.base)
        first_is_constant = not expression.plus
        high = self.constant(expression.high, "a slice's bound") if first_is_constant else None
        low = self.constant(expression.low, "a slice's bound" if first_is_constant else "a slice's width")
        if base is UNKNOWN or low is None:
            return UNKNOWN
        if expression.plus:
            return self._plus_slice(expression, base, low)
        if high is None:
            return UNKNOWN
        if high < low or low < 0:
            return self.fail(expression, f"the slice [{high}:{low}] is empty or negative")
        if base is INTEGER:
            if expression.base.value is not None:
                expression.value = fold_slice(expression.base.value, high, low)
            return bits(high - low + 1)
        if not isinstance(base, BitsType):
            return self.fail(expression, f"a slice needs a bit or int type, not '{base}'", expression.base)
        if high >= base.width:
            return self.fail(
                expression, f"bit {high} is out of the range of '{base}' (valid: 0 to {base.width - 1})"
            )
        if expression.base.value is not None:
            expression.value = fold_slice(expression.base.value, high, low)
        return bits(high - low + 1)

    def _plus_slice(self, expression: ast.Slice, base: Type, width: int) -> Type:
        low = self._operand(expression.high)
        if low is UNKNOWN:
            return UNKNOWN
        if not isinstance(base, BitsType) or not is_number(low):
            return self.fail(expression, f"a slice needs a bit type and a number, not '{base}' and '{low}'")
        if not 1 <= width <= base.width:
            return self.fail(expression, f"a slice of {width} bits is out of the range of '{base}'")
        start = expression.high.value
        if start is not None:
            if not 0 <= start <= base.width - width:
                return self.fail(
                    expression, f"bits {start + width - 1}:{start} are out of the range of '{base}'"
                )
            if expression.base.value is not None:
                expression.value = fold_slice(expression.base.value, start + width - 1, start)
        return bits(width)


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
