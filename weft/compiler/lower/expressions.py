"""Lowering of expressions: hoists side effects, folds, and turns aggregates into their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.compiler import ast
from weft.compiler.ir import (
    Assign,
    Binary,
    Const,
    ElementField,
    Expr,
    If,
    LastField,
    LastIndex,
    UnionLastField,
)
from weft.compiler.lower import build
from weft.compiler.lower.aggregates import Aggregates
from weft.compiler.lower.equality import Equality
from weft.compiler.lower.storage import flat_fields, scalar_type
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    SetValue,
    StackCursor,
    StackValue,
    StructValue,
    TextValue,
    UnionCursor,
    UnionValue,
)
from weft.compiler.types import (
    BOOL,
    BitsType,
    StructType,
    Type,
    bits,
)

_GROWING = (ast.Unary, ast.Binary, ast.Ternary, ast.Cast, ast.Slice, ast.Call)


class Expressions(Equality):
    """`value` for any expression, `scalar` for one that is known to be a scalar."""

    def scalar(self, expression: ast.Expression) -> Expr:
        """The value of a scalar expression."""
        value = self.value(expression)
        if not isinstance(value, Expr):
            self.refuse("a bit, int or bool value is needed here", expression)
        return value

    def value(self, expression: ast.Expression) -> Any:
        """The value of an expression; emits what it needs done first."""
        known = expression.value
        if known is not None and not isinstance(known, list | dict):
            return self._known(expression, known)
        handler = self._HANDLERS.get(type(expression))
        if handler is None:
            self.refuse("this expression cannot be compiled", expression)
        value = handler(self, expression)
        if isinstance(expression, _GROWING) and isinstance(value, Expr):
            return self.shallow(value, expression)
        return value

    def _known(self, expression: ast.Expression, known: Any) -> Any:
        if isinstance(known, str):
            return TextValue(known)
        type_ = self.type_of(expression)
        scalar = scalar_type(type_)
        if scalar is None:
            # An arbitrary-precision integer: wide enough for its value.
            scalar = bits(max(32, int(known).bit_length()), known < 0)
        return build.constant(known, scalar)

    def ordered(self, expressions: Sequence[ast.Expression]) -> list[Any]:
        """Values of operands, left to right: an earlier one is saved when a later one has effects."""
        values: list[Any] = []
        for expression in expressions:
            with self.collecting() as before:
                value = self.value(expression)
            if before:
                values = [self.saved(earlier) for earlier in values]
                self.out += before
            values.append(value)
        return values

    def saved(self, value: Any) -> Any:
        """A copy that later writes do not change."""
        if isinstance(value, Expr):
            return self.snapshot(value)
        if isinstance(value, StructValue):
            return StructValue(value.type, {name: self.saved(part) for name, part in value.fields.items()})
        if isinstance(value, HeaderValue):
            copy = self.temporary(value.type)
            self.assign(copy, value, None)
            return copy
        return value

    # ------------------------------------------------------------------------------ names, members

    def _name(self, expression: ast.Name) -> Any:
        declaration = expression.declaration
        value = self.frame.find(declaration) if declaration is not None else None
        if value is None and isinstance(declaration, ast.ConstantDeclaration):
            return self.value(declaration.initial)
        if value is None and isinstance(declaration, ast.ValueSetDeclaration):
            return SetValue(declaration.name)
        if value is None:
            self.refuse(f"'{expression.name}' has no value here", expression)
        return value

    def _member(self, expression: ast.Member) -> Any:
        base_expression = expression.base
        if isinstance(base_expression, ast.Call) and base_expression.kind == "table":
            return self.table_result(base_expression, expression.name)
        base = self.value(base_expression)
        return self.member_of(base, expression.name, expression)

    def table_result(self, call: ast.Call, member: str) -> Expr:
        """table.apply().hit or .miss as a value."""
        raise NotImplementedError

    def member_of(self, base: Any, name: str, where: ast.Expression) -> Any:
        """base.name."""
        if isinstance(base, StructValue):
            return base.fields[name]
        if isinstance(base, HeaderValue):
            return base.fields[name]
        if isinstance(base, HeaderElement):
            return self._element_field(base, name, where)
        if isinstance(base, HeaderLiteral):
            if base.fields is None:
                scalar = self.scalar_type_of(where)
                return build.constant(0, scalar or bits(1))
            return base.fields[name]
        if isinstance(base, UnionValue):
            return base.members[name]
        if isinstance(base, StackValue):
            if name in ("next", "last"):
                return StackCursor(base, name)
            if name == "lastIndex":
                return LastIndex(base.name, bits(32))
        if isinstance(base, StackCursor):
            element = base.stack.type.element
            if isinstance(element, StructType) and element.kind == "header_union":
                return UnionCursor(base, name)
            if base.which == "next":
                self.refuse("the next element of a stack can be extracted into, not read", where)
            return LastField(base.stack.name, name, self._scalar_field(element, name, where))
        if isinstance(base, UnionCursor):
            element = base.cursor.stack.type.element
            assert isinstance(element, StructType)
            member = element.fields[base.member]
            scalar = self._scalar_field(member, name, where)
            return UnionLastField(base.cursor.stack.name, base.member, name, scalar)
        self.refuse(f"'{name}' cannot be taken of this value", where)

    def _scalar_field(self, header: Type, name: str, where: ast.Expression) -> Type:
        assert isinstance(header, StructType)
        scalar = scalar_type(header.fields[name])
        if scalar is None:
            self.refuse("a struct within a stack's element cannot be used as a whole", where)
        return scalar

    def _element_field(self, base: HeaderElement, name: str, where: ast.Expression) -> Expr:
        element = base.stack.type.element
        assert isinstance(element, StructType)
        names = [field for field, _ in flat_fields(element)]
        if name not in names:
            self.refuse("a struct within a stack's element cannot be used as a whole", where)
        return ElementField(
            base.stack.name, base.index, names.index(name), self._scalar_field(element, name, where)
        )

    def _index(self, expression: ast.Index) -> Any:
        base, index = self.ordered([expression.base, expression.index])
        if isinstance(base, StructValue):
            if not isinstance(index, Const):
                self.refuse("an array needs an index known at compile time on BMv2", expression.index)
            if str(index.value) not in base.fields:
                self.refuse(f"index {index.value} is out of the range of '{base.type}'", expression.index)
            return base.fields[str(index.value)]
        if not isinstance(base, StackValue):
            self.refuse("this cannot be indexed", expression)
        if isinstance(index, Const):
            if not 0 <= index.value < len(base.elements):
                self.refuse(
                    f"index {index.value} is out of the range of a stack of {len(base.elements)}",
                    expression.index,
                )
            return base.elements[index.value]
        element = base.type.element
        if isinstance(element, StructType) and element.kind == "header_union":
            self.refuse("a stack of header unions needs an index known at compile time", expression.index)
        return HeaderElement(base, self.snapshot(index) if self.freeze_indices else self.simple(index))

    # ------------------------------------------------------------------------------ operators

    def _unary(self, expression: ast.Unary) -> Expr:
        return build.unary(expression.operator, self.scalar(expression.operand))

    def _binary(self, expression: ast.Binary) -> Any:
        operator = expression.operator
        if operator in ("&&", "||"):
            return self._short_circuit(expression)
        left, right = self.ordered([expression.left, expression.right])
        if operator in ("==", "!="):
            same = self.equal(left, right, expression)
            return same if operator == "==" else _inverse(same)
        return self.combine(operator, left, right, expression)

    def combine(self, operator: str, left: Any, right: Any, expression: ast.Expression) -> Expr:
        """left operator right, for evaluated scalars; `expression` gives the result's type."""
        if not isinstance(left, Expr) or not isinstance(right, Expr):
            self.refuse(f"'{operator}' needs bit or int values", expression)
        if operator == "++":
            type_ = self.scalar_type_of(expression)
            assert type_ is not None
            return build.concatenate(left, right, type_)
        if operator not in ("<<", ">>") and left.type != right.type:
            # Serializable enums and their underlying types, and integers typed by the other side.
            if isinstance(left, Const):
                left = build.convert(left, right.type)
            else:
                right = build.convert(right, left.type)
        return build.binary(operator, left, right)

    def _short_circuit(self, expression: ast.Binary) -> Expr:
        left = self.scalar(expression.left)
        with self.collecting() as before:
            right = self.scalar(expression.right)
        if not before:
            return build.binary(expression.operator, left, right)
        wanted = expression.operator == "&&"
        if isinstance(left, Const):
            if bool(left.value) != wanted:
                return left
            self.out += before
            return right
        result = self.temporary(BOOL)
        self.emit(Assign(result, left, expression.span))
        before.append(Assign(result, right, expression.span))
        self.emit(If(result if wanted else build.negate(result), before, [], expression.span))
        return result  # type: ignore[no-any-return]

    def _ternary(self, expression: ast.Ternary) -> Any:
        condition = self.scalar(expression.condition)
        if isinstance(condition, Const):
            return self.value(expression.first if condition.value else expression.second)
        with self.collecting() as yes:
            first = self.value(expression.first)
        with self.collecting() as no:
            second = self.value(expression.second)
        if not yes and not no and isinstance(first, Expr) and isinstance(second, Expr):
            return build.choice(condition, first, build.convert(second, first.type))
        result = self.temporary(self.type_of(expression))
        for branch, value in ((yes, first), (no, second)):
            with self.collecting() as code:
                self.assign(result, value, expression.span)
            branch += code
        self.emit(If(condition, yes, no, expression.span))
        return result

    def _cast(self, expression: ast.Cast) -> Any:
        target = self.type_of(expression)
        value = self.value(expression.operand)
        scalar = scalar_type(target)
        if isinstance(value, Expr):
            if scalar is None:
                return value
            return build.convert(value, scalar)
        return self.retyped(value, target)

    def _slice(self, expression: ast.Slice) -> Expr:
        base = self.scalar(expression.base)
        if expression.plus:
            width = expression.low.value
            if expression.high.value is not None:
                return build.slice_of(base, expression.high.value + width - 1, expression.high.value)
            low = self.scalar(expression.high)
            return build.convert(build.binary(">>", self._unsigned(base), low), bits(width))
        high, low_bound = self.bound(expression.high), self.bound(expression.low)
        return build.slice_of(base, high, low_bound)

    def bound(self, expression: ast.Expression) -> int:
        """A slice's bound, maybe from a constructor parameter."""
        value = self.value(expression)
        if not isinstance(value, Const):
            self.refuse("a slice's bound must be known at compile time", expression)
        return int(value.value)

    def _unsigned(self, value: Expr) -> Expr:
        if isinstance(value.type, BitsType) and value.type.signed:
            return build.convert(value, bits(value.type.width))
        return value

    # ------------------------------------------------------------------------------ equality

    def call_value(self, expression: ast.Call) -> Any:
        """The result of a call."""
        raise NotImplementedError

    def _call(self, expression: ast.Call) -> Any:
        return self.call_value(expression)

    _HANDLERS: ClassVar[dict[type, Any]] = {
        ast.Name: _name,
        ast.Member: _member,
        ast.Index: _index,
        ast.Unary: _unary,
        ast.Binary: _binary,
        ast.Ternary: _ternary,
        ast.Cast: _cast,
        ast.Slice: _slice,
        ast.ListExpression: Aggregates._list,
        ast.StructExpression: Aggregates._struct_literal,
        ast.InvalidHeader: Aggregates._invalid,
        ast.DefaultExpression: Aggregates._default,
        ast.Call: _call,
    }


def _inverse(value: Expr) -> Expr:
    if isinstance(value, Binary) and value.operator == "==":
        return Binary("!=", value.left, value.right, BOOL)
    return build.negate(value)
