"""The forms that P4 values take: scalars are IR expressions, everything else is described here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from weft.compiler import ast
from weft.compiler.ir import ActionProfile, Expr, FieldRef, Table
from weft.compiler.lower.frame import Frame
from weft.compiler.types import BitsType, StackType, StructType, Type


class Value:
    """A value that is no scalar."""

    __slots__ = ()


P4Value: TypeAlias = Expr | Value
"""The value of an expression, or what can be written."""


@dataclass(slots=True)
class StructValue(Value):
    """A struct, tuple or list: its parts by name (tuples: "0", "1", …). `type` is None for a list."""

    type: Type | None
    fields: dict[str, P4Value]


@dataclass(slots=True)
class HeaderValue(Value):
    """A header instance; `fields` holds FieldRefs (and StructValues for nested structs)."""

    name: str
    type: StructType
    fields: dict[str, P4Value]
    union: UnionValue | None = None


@dataclass(slots=True)
class HeaderElement(Value):
    """stack[index] with an index known at run time."""

    stack: StackValue
    index: Expr


@dataclass(slots=True)
class HeaderLiteral(Value):
    """A header's value from a list or struct expression, or an invalid header (`fields` None)."""

    type: StructType
    fields: dict[str, P4Value] | None


@dataclass(slots=True)
class StackValue(Value):
    """A header stack or union stack."""

    name: str
    type: StackType
    elements: list[P4Value]


@dataclass(slots=True)
class StackCursor(Value):
    """stack.next or stack.last (`which`), in parsers."""

    stack: StackValue
    which: str


@dataclass(slots=True)
class UnionCursor(Value):
    """A member of stack.next or stack.last of a union stack."""

    cursor: StackCursor
    member: str


@dataclass(slots=True)
class UnionValue(Value):
    """A header union."""

    name: str
    type: StructType
    members: dict[str, HeaderValue] = field(default_factory=dict)


@dataclass(slots=True)
class SliceTarget(Value):
    """target[high:low], to be written."""

    target: Expr
    high: int
    low: int


@dataclass(slots=True)
class PlusSliceTarget(Value):
    """target[low +: width] with a low bound known at run time, to be written."""

    target: Expr
    low: Expr
    type: BitsType


@dataclass(slots=True)
class TextValue(Value):
    """A string."""

    text: str


@dataclass(slots=True)
class SetValue(Value):
    """A value set of a parser."""

    name: str


@dataclass(slots=True)
class PacketValue(Value):
    """packet_in or packet_out."""

    kind: str


@dataclass(slots=True)
class ExternValue(Value):
    """An instance of an extern: its constructor's arguments by parameter name.

    `element` is a register's, `unit` what a counter or meter counts, `profile` an action profile's or selector's.
    Direct counters and meters have the `table` they are attached to, direct meters the `result` they are read into.
    If a table property made the instance, `annotations` come from that property.
    """

    kind: str
    name: str
    declaration: ast.InstanceDeclaration | None
    arguments: dict[str, P4Value]
    type: Type
    call: ast.Call
    element: Type | None = None
    unit: str = ""
    profile: ActionProfile | None = None
    table: Table | None = None
    result: FieldRef | None = None
    annotations: ast.Annotations | None = None


@dataclass(slots=True)
class BlockValue(Value):
    """A control or parser instance: `frame` has its own instances, `applied` its first application."""

    declaration: ast.ControlDeclaration | ast.ParserDeclaration
    name: str
    arguments: dict[str, P4Value]
    bindings: dict[Type, Type]
    frame: Frame | None = None
    applied: Frame | None = None


@dataclass(slots=True)
class TableValue(Value):
    """A table of an instance; `frame` is its control's."""

    declaration: ast.TableDeclaration
    frame: Frame


@dataclass(slots=True)
class ActionValue(Value):
    """An action of an instance; `frame` is its control's."""

    declaration: ast.ActionDeclaration
    frame: Frame
