"""Expressions and object references of BMv2 JSON (behavioral-model docs/JSON_format.md, "type value object").

Every expression has a `kind`, the type of its value. The loader has checked the kinds of all operands.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, TypeAlias


class Kind(enum.Enum):
    """Type of an expression's value."""

    DATA = "integer"
    BOOL = "boolean"
    HEADER = "header"
    STACK = "header stack"
    UNION = "header union"
    UNION_STACK = "header union stack"


VALID_FIELD = "$valid$"
"""The hidden one-bit field with the validity of every header."""


@dataclass(frozen=True, slots=True)
class FieldRef:
    """A field of a header or metadata instance.

    `width_bits` is the largest width of a variable-length field.
    """

    kind: ClassVar[Kind] = Kind.DATA
    header: str
    field: str
    width_bits: int
    signed: bool = False

    @property
    def is_validity(self) -> bool:
        """True for the hidden field `$valid$`."""
        return self.field == VALID_FIELD

    def __str__(self) -> str:
        return f"{self.header}.{self.field}"


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer of unlimited precision, possibly negative; `width_bits` only where the JSON gives one."""

    kind: ClassVar[Kind] = Kind.DATA
    value: int
    width_bits: int | None = None


@dataclass(frozen=True, slots=True)
class BoolConstant:
    """`true` or `false`."""

    kind: ClassVar[Kind] = Kind.BOOL
    value: bool


@dataclass(frozen=True, slots=True)
class RuntimeData:
    """Parameter number `index` of the enclosing action (JSON types `runtime_data` and `local`)."""

    kind: ClassVar[Kind] = Kind.DATA
    index: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class HeaderRef:
    """A header instance."""

    kind: ClassVar[Kind] = Kind.HEADER
    name: str


@dataclass(frozen=True, slots=True)
class StackRef:
    """A header stack."""

    kind: ClassVar[Kind] = Kind.STACK
    name: str


@dataclass(frozen=True, slots=True)
class UnionRef:
    """A header union."""

    kind: ClassVar[Kind] = Kind.UNION
    name: str


@dataclass(frozen=True, slots=True)
class UnionStackRef:
    """A stack of header unions."""

    kind: ClassVar[Kind] = Kind.UNION_STACK
    name: str


@dataclass(frozen=True, slots=True)
class StackField:
    """A field of the last valid header of a stack."""

    kind: ClassVar[Kind] = Kind.DATA
    stack: str
    field: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class UnionStackField:
    """A field of a member of the last valid union of a union stack."""

    kind: ClassVar[Kind] = Kind.DATA
    stack: str
    member: str
    field: str
    width_bits: int


@dataclass(frozen=True, slots=True)
class Lookahead:
    """`width_bits` of the packet, `offset_bits` after the parser's position, not consumed."""

    kind: ClassVar[Kind] = Kind.DATA
    offset_bits: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class RegisterRef:
    """The cell `index` of a register array."""

    kind: ClassVar[Kind] = Kind.DATA
    array: str
    index: Expression
    width_bits: int


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """Field number `field_index` of a header computed at run time (`access_field`)."""

    kind: ClassVar[Kind] = Kind.DATA
    header: Expression
    field_index: int
    width_bits: int


@dataclass(frozen=True, slots=True)
class UnionMemberAccess:
    """Member number `member_index` of a union computed at run time (`access_union_header`)."""

    kind: ClassVar[Kind] = Kind.HEADER
    union: Expression
    member_index: int


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of `OPERATORS` on `operands`; the order for `?` is condition, then, else."""

    operator: str
    operands: tuple[Expression, ...]
    kind: Kind


Expression: TypeAlias = (
    FieldRef
    | Constant
    | BoolConstant
    | RuntimeData
    | HeaderRef
    | StackRef
    | UnionRef
    | UnionStackRef
    | StackField
    | UnionStackField
    | Lookahead
    | RegisterRef
    | FieldAccess
    | UnionMemberAccess
    | Operation
)


@dataclass(frozen=True, slots=True)
class CalculationRef:
    """A named calculation (hash or checksum)."""

    name: str


@dataclass(frozen=True, slots=True)
class MeterArrayRef:
    """A meter array."""

    name: str


@dataclass(frozen=True, slots=True)
class CounterArrayRef:
    """A counter array."""

    name: str


@dataclass(frozen=True, slots=True)
class RegisterArrayRef:
    """A register array."""

    name: str


@dataclass(frozen=True, slots=True)
class StringLiteral:
    """Text, such as the format of `log_msg`."""

    value: str


@dataclass(frozen=True, slots=True)
class ParametersVector:
    """Several arguments in one (the values of `log_msg`)."""

    elements: tuple[Expression, ...]


Argument: TypeAlias = (
    Expression | CalculationRef | MeterArrayRef | CounterArrayRef | RegisterArrayRef | StringLiteral | ParametersVector
)
"""An argument of a primitive."""

_D, _B, _H = Kind.DATA, Kind.BOOL, Kind.HEADER

OPERATORS: dict[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"), ((_D, _D), _D)),
    **dict.fromkeys(("two_comp_mod", "sat_cast", "usat_cast"), ((_D, _D), _D)),
    **dict.fromkeys((">", ">=", "<", "<="), ((_D, _D), _B)),
    **dict.fromkeys(("and", "or"), ((_B, _B), _B)),
    "~": ((_D,), _D),
    "not": ((_B,), _B),
    "valid": ((_H,), _B),
    "valid_union": ((Kind.UNION,), _B),
    "d2b": ((_D,), _B),
    "b2d": ((_B,), _D),
    "dereference_header_stack": ((Kind.STACK, _D), _H),
    "dereference_union_stack": ((Kind.UNION_STACK, _D), Kind.UNION),
}
"""Operand kinds and result kind of the operators with one signature.

`==`, `!=` (two of one kind), `?` (a boolean and two of one kind), `last_stack_index` and `size_stack` (a
header or union stack), unary `+` and `-` are checked separately.
"""
