"""Scalar expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.compiler.types import BOOL, BitsType, Type, VarbitType


class Expr:
    """A scalar; every subclass has `type` (BitsType, BOOL or, for a field, VarbitType)."""

    __slots__ = ()
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return ()


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A constant; bool for BOOL."""

    value: int
    type: Type


@dataclass(frozen=True, slots=True)
class FieldRef(Expr):
    """A field of a header or metadata instance."""

    header: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class LastField(Expr):
    """A field of the last valid element of a header stack (parsers)."""

    stack: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class UnionLastField(Expr):
    """A field of a member of the last valid union of a stack (select keys)."""

    stack: str
    member: str
    field: str
    type: Type


@dataclass(frozen=True, slots=True)
class ElementField(Expr):
    """A field of stack[index] with an index known at run time; `offset` is the field's position."""

    stack: str
    index: Expr
    offset: int
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Valid(Expr):
    """Validity of a header."""

    header: str
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class UnionValid(Expr):
    """Validity of a header union."""

    union: str
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class LastIndex(Expr):
    """Index of the last valid element of a stack."""

    stack: str
    type: Type


@dataclass(frozen=True, slots=True)
class ParamRef(Expr):
    """Action data number `index`."""

    index: int
    type: Type


@dataclass(frozen=True, slots=True)
class Lookahead(Expr):
    """`width` bits of the packet, `offset` bits ahead."""

    offset: int
    type: BitsType


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`!`, `~` or `-`."""

    operator: str
    operand: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """A P4 operator on operands of one type (shifts: any unsigned right side)."""

    operator: str
    left: Expr
    right: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Choice(Expr):
    """condition ? first : second."""

    condition: Expr
    first: Expr
    second: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.condition, self.first, self.second)


@dataclass(frozen=True, slots=True)
class Convert(Expr):
    """A cast between bit types and between bool and bit<1>."""

    operand: Expr
    type: Type

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return (self.operand,)


def walk(expression: Expr) -> Iterator[Expr]:
    """The expression and everything in it, outer ones first."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children()))


def bit_width(type_: Type) -> int:
    """Width of a scalar in the JSON: bool is 1 bit."""
    if isinstance(type_, BitsType | VarbitType):
        return type_.width
    return 1
