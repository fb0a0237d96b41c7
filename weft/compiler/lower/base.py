"""State shared by the parts of the lowering."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from weft.compiler import ast
from weft.compiler.budgets import INLINED_BLOCKS, STATEMENTS, UNROLLED_ROUNDS, Spending
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.ir import Assign, Const, Expr, FieldRef, LoweredProgram, ParamRef, Stmt
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.storage import Storage, scalar_type
from weft.compiler.lower.values import Value
from weft.compiler.source import Span
from weft.compiler.types import Type


class LowererBase:
    """Where code goes (`out`), what names mean (`frame`), and where we are (`place`).

    `place` is one of "parser", "verify", "ingress", "egress", "update", "deparser".
    """

    def __init__(self, program: LoweredProgram, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.storage = Storage(program, diagnostics)
        self.globals = Frame(None, "")
        self.frame = self.globals
        self.out: list[Stmt] = []
        self.place = ""
        self.in_action = False
        # Whether the index of a target is copied because what follows may change it.
        self.freeze_indices = False
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
        self._call_depth = 0
        self._action_depth = 0

    # ------------------------------------------------------------------------------ messages

    def refuse(self, message: str, where: ast.Node | Span | None) -> NoReturn:
        """Report something that cannot be compiled and abandon the current block."""
        self.diagnostics.error(message, where.span if isinstance(where, ast.Node) else where)
        raise Refused

    # ------------------------------------------------------------------------------ output

    def emit(self, statement: Stmt) -> None:
        """Append a statement."""
        self._emitted.take(1, getattr(statement, "span", None))
        self.out.append(statement)

    @contextmanager
    def collecting(self) -> Iterator[list[Stmt]]:
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

    def temporary(self, type_: Type, name: str = "tmp") -> Any:
        """A fresh variable."""
        return self.storage.allocate(type_, name)

    def snapshot(self, value: Expr, span: Span | None = None) -> Expr:
        """The value's copy in a fresh variable; constants and action data need none."""
        if isinstance(value, Const | ParamRef):
            return value
        target = self.temporary(value.type)
        assert isinstance(target, FieldRef)
        self.emit(Assign(target, value, span))
        return target

    def simple(self, value: Expr, span: Span | None = None) -> Expr:
        """A form that any primitive takes: a constant, a field or action data."""
        if isinstance(value, Const | ParamRef | FieldRef):
            return value
        return self.snapshot(value, span)

    # ------------------------------------------------------------------------------ types

    def type_of(self, expression: ast.Expression) -> Type:
        """An expression's type in this frame."""
        return self.frame.type(expression.type)

    def scalar_type_of(self, expression: ast.Expression) -> Type | None:
        """Its IR type, None when it is no scalar."""
        return scalar_type(self.type_of(expression))


def is_scalar(value: Expr | Value) -> bool:
    """Whether a value is an IR expression."""
    return isinstance(value, Expr)
