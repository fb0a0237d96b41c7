"""The context that every part of the lowering gets: the program so far, and where in it we are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from weft.compiler import ast, ir
from weft.compiler.budgets import INLINED_BLOCKS, STATEMENTS, UNROLLED_ROUNDS, Spending
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.lower.control_plane import ControlPlane
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.storage import Storage, scalar_type
from weft.compiler.lower.values import P4Value
from weft.compiler.source import Span
from weft.compiler.types import Type

ExpressionHandler = Callable[["Context", Any], P4Value | None]
"""Gives an expression's value; emits what it needs done first."""
StatementHandler = Callable[["Context", Any], None]


@dataclass(frozen=True, slots=True)
class Handlers:
    """The function for each kind of expression and statement."""

    expressions: Mapping[type[ast.Node], ExpressionHandler]
    statements: Mapping[type[ast.Node], StatementHandler]


Copies = list[tuple[P4Value, P4Value]]
"""Targets, each with the variable that is copied to it when a call ends."""


@dataclass(slots=True)
class CallState:
    """Where we are among calls. `pending_copies` are those that the calls around must still make."""

    depth: int = 0
    action_depth: int = 0
    in_action: bool = False
    pending_copies: list[Copies] = field(default_factory=list)


@dataclass(slots=True)
class LoopState:
    """Where `break` and `continue` lead, innermost last; `written_names` of nodes that were looked at, by id."""

    break_labels: list[int] = field(default_factory=list)
    continue_labels: list[int] = field(default_factory=list)
    written_names: dict[int, set[str]] = field(default_factory=dict)


@dataclass(slots=True)
class TableState:
    """Tables and actions lowered so far, by the identities of declaration and frame; `pipeline` is the current one.

    `key_copies`: by the table's identity, variables and the expressions of keys that each application computes anew.
    """

    pipeline: ir.Pipeline | None = None
    no_action: ast.ActionDeclaration | None = None
    lowered: dict[tuple[int, int], ir.Table] = field(default_factory=dict)
    key_copies: dict[int, list[tuple[ir.FieldRef, ast.Expression]]] = field(default_factory=dict)
    actions: dict[tuple[int, int, int], ir.Action] = field(default_factory=dict)


class Context:
    """Where code goes (`out`), what names mean (`frame`), and where we are (`place`).

    `place` is one of "parser", "verify", "ingress", "egress", "update", "deparser". `expressions` and `statements`
    give the function that lowers a kind of node.
    """

    def __init__(
        self, program: ir.LoweredProgram, diagnostics: Diagnostics, tree: ast.Program, handlers: Handlers
    ) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.control_plane = ControlPlane(tree)
        self.expressions = handlers.expressions
        self.statements = handlers.statements
        self.storage = Storage(program, diagnostics)
        self.globals = Frame(None, "")
        self.frame = self.globals
        self.out: list[ir.Stmt] = []
        self.place = ""
        # Whether the index of a target is copied because what follows may change it.
        self.freeze_indices = False
        self.calls = CallState()
        self.loops = LoopState()
        self.tables = TableState()
        self.extern_places: dict[tuple[str, str], Span] = {}
        self.list_digests = 0
        self._labels = 0
        self._emitted = Spending(
            diagnostics,
            STATEMENTS,
            f"with all calls inlined the program has more than {STATEMENTS} statements",
        )
        self.inlined = Spending(
            diagnostics, INLINED_BLOCKS, f"the program inlines more than {INLINED_BLOCKS} instances and calls"
        )
        self.unrolled = Spending(
            diagnostics, UNROLLED_ROUNDS, f"loops unroll to more than {UNROLLED_ROUNDS} rounds in all"
        )

    # ------------------------------------------------------------------------------ messages

    def refuse(self, message: str, where: ast.Node | Span | None) -> NoReturn:
        """Report something that cannot be compiled and abandon the current block."""
        self.diagnostics.error(message, where.span if isinstance(where, ast.Node) else where)
        raise Refused

    # ------------------------------------------------------------------------------ output

    def emit(self, statement: ir.Stmt) -> None:
        """Append a statement."""
        self._emitted.take(1, getattr(statement, "span", None))
        self.out.append(statement)

    @contextmanager
    def collecting(self) -> Iterator[list[ir.Stmt]]:
        """Statements emitted inside go to the list it yields."""
        outer = self.out
        self.out = []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def in_frame(self, frame: Frame) -> Iterator[Frame]:
        """Names resolve in another frame."""
        outer = self.frame
        self.frame = frame
        try:
            yield frame
        finally:
            self.frame = outer

    def new_label(self) -> int:
        """A label for Labeled and Jump."""
        self._labels += 1
        return self._labels

    # ------------------------------------------------------------------------------ temporaries

    def temporary(self, type_: Type, name: str = "tmp") -> P4Value:
        """A fresh variable."""
        return self.storage.allocate(type_, name)

    def scalar_temporary(self, type_: Type, name: str = "tmp") -> ir.FieldRef:
        """A fresh variable of a scalar type."""
        variable = self.storage.allocate(type_, name)
        assert isinstance(variable, ir.FieldRef)
        return variable

    def snapshot(self, value: ir.Expr, span: Span | None = None) -> ir.Expr:
        """The value's copy in a fresh variable; constants and action data need none."""
        if isinstance(value, ir.Const | ir.ParamRef):
            return value
        target = self.scalar_temporary(value.type)
        self.emit(ir.Assign(target, value, span))
        return target

    def simple(self, value: ir.Expr, span: Span | None = None) -> ir.Expr:
        """A form that any primitive takes: a constant, a field or action data."""
        if isinstance(value, ir.Const | ir.ParamRef | ir.FieldRef):
            return value
        return self.snapshot(value, span)

    # ------------------------------------------------------------------------------ types

    def type_of(self, expression: ast.Expression) -> Type:
        """An expression's type in this frame."""
        return self.frame.type(expression.type)

    def scalar_type_of(self, expression: ast.Expression) -> Type | None:
        """Its IR type, None when it is no scalar."""
        return scalar_type(self.type_of(expression))
