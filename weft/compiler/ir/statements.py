"""Statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.compiler.ir.expressions import Expr
from weft.compiler.source import Span

if TYPE_CHECKING:
    from weft.compiler.ir.program import Table


@dataclass(frozen=True, slots=True)
class Reference:
    """A named object as a primitive's parameter: `kind` is its JSON type."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of values as a primitive's parameter (log_msg)."""

    items: tuple[Expr, ...]


Operand = Expr | Reference | Vector


class Stmt:
    """A statement; `span` is its source."""

    __slots__ = ()
    span: Span | None


@dataclass(slots=True)
class Assign(Stmt):
    """target = value; the target is a FieldRef, LastField or ElementField."""

    target: Expr
    value: Expr
    span: Span | None = None


@dataclass(slots=True)
class Primitive(Stmt):
    """A call of one of the target's primitives."""

    name: str
    operands: list[Operand]
    span: Span | None = None


@dataclass(slots=True)
class If(Stmt):
    """if (condition) then else otherwise."""

    condition: Expr
    then: list[Stmt]
    otherwise: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Labeled(Stmt):
    """A body that Jump(label) leaves; the label is unique."""

    label: int
    body: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Jump(Stmt):
    """Go to the end of the Labeled statement around."""

    label: int
    span: Span | None = None


@dataclass(slots=True)
class Loop(Stmt):
    """while (condition) body, where `condition` is evaluated by `head` first; left by a Jump to a label around."""

    head: list[Stmt]
    condition: Expr
    body: list[Stmt]
    span: Span | None = None


@dataclass(slots=True)
class Exit(Stmt):
    """End the pipeline."""

    span: Span | None = None


@dataclass(slots=True)
class Apply(Stmt):
    """Apply a table; then `hit` or `miss`, or the branch of the action that ran (`default` for the others)."""

    table: Table
    hit: list[Stmt] | None = None
    miss: list[Stmt] | None = None
    branches: dict[str, list[Stmt]] | None = None
    default: list[Stmt] | None = None
    span: Span | None = None


@dataclass(slots=True)
class Extract(Stmt):
    """Extract a header (`kind` regular), the next of a stack, or a member of a union stack's next."""

    kind: str
    target: str
    member: str | None
    length: Expr | None
    span: Span | None = None


@dataclass(slots=True)
class Advance(Stmt):
    """Skip bits of the packet."""

    amount: Expr
    span: Span | None = None


@dataclass(slots=True)
class Verify(Stmt):
    """Raise a parser error unless the condition holds."""

    condition: Expr
    error: Expr
    span: Span | None = None
