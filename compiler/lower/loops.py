"""Loops: unrolled when their bounds are known, else jumps within an action (specification, section 12.8)."""

from __future__ import annotations

from typing import Any

from compiler import ast
from compiler.ir import Const, Expr, Jump, Loop, Stmt
from compiler.lower import build
from compiler.lower.calls import Calls, labeled
from compiler.lower.storage import scalar_type
from compiler.lower.values import StackValue, StructValue
from compiler.types import BitsType, Type

# Longer loops become jumps, where the place allows it.
UNROLL_LIMIT = 256


class LoopBounds(Calls):
    """for (…;…;…) and for (… in …)."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.break_labels: list[int] = []
        self.continue_labels: list[int] = []

    def statement(self, statement: ast.Node) -> None:
        """One statement."""
        raise NotImplementedError

    def for_loop(self, statement: ast.For) -> None:
        """for (initialisers; condition; updates) body: a loop of jumps."""
        for initialiser in statement.initialisers:
            self.statement(initialiser)
        after, next_round = self.new_label(), self.new_label()
        with self.collecting() as head:
            condition = self.scalar(statement.condition)
        if isinstance(condition, Const) and not condition.value:
            self.out += head
            return
        with self.collecting() as body:
            self._round(statement.body, after, next_round)
        with self.collecting() as updates:
            for update in statement.updates:
                self.statement(update)
        loop = Loop(head, condition, labeled(next_round, body, statement.span) + updates, statement.span)
        self.out += labeled(after, [loop], statement.span)

    def _round(self, body: ast.Statement, after: int, next_round: int) -> None:
        self.break_labels.append(after)
        self.continue_labels.append(next_round)
        try:
            self.statement(body)
        finally:
            self.break_labels.pop()
            self.continue_labels.pop()

    def for_in_loop(self, statement: ast.ForIn) -> None:
        """for (variable in collection) body."""
        collection = statement.collection
        if isinstance(collection, ast.Binary) and collection.operator == "..":
            low, high = self.ordered([collection.left, collection.right])
            known = isinstance(low, Const) and isinstance(high, Const)
            if known and high.value - low.value < UNROLL_LIMIT:
                values: list[Any] = [Const(value, low.type) for value in range(low.value, high.value + 1)]
                self._unroll(statement, values)
                return
            self._range_loop(statement, low, high)
            return
        value = self.value(collection)
        if isinstance(value, StackValue):
            self._unroll(statement, value.elements)
        elif isinstance(value, StructValue):
            self._unroll(statement, list(value.fields.values()))
        else:
            self.refuse("BMv2 cannot loop over this", collection)

    def _variable_type(self, variable: ast.VariableDeclaration | ast.Name) -> Type:
        return self.frame.type(variable.type)

    def _bind_variable(self, statement: ast.ForIn, value: Any) -> None:
        variable = statement.variable
        scalar = scalar_type(self._variable_type(variable))
        if isinstance(value, Expr) and isinstance(scalar, BitsType):
            value = build.convert(value, scalar)
        if isinstance(variable, ast.VariableDeclaration):
            self.frame.bind(variable, value)
        else:
            self.assign(self.target(variable), value, statement.span)

    def _unroll(self, statement: ast.ForIn, values: list[Any]) -> None:
        after = self.new_label()
        with self.collecting() as whole:
            for value in values:
                next_round = self.new_label()
                with self.collecting() as body:
                    self._bind_variable(statement, self._readable(value))
                    self._round(statement.body, after, next_round)
                self.out += labeled(next_round, body, statement.span)
                if self.out and isinstance(self.out[-1], Jump):
                    break
        self.out += labeled(after, whole, statement.span)

    def _readable(self, value: Any) -> Any:
        return value

    def _range_loop(self, statement: ast.ForIn, low: Expr, high: Expr) -> None:
        scalar = scalar_type(self._variable_type(statement.variable))
        assert scalar is not None
        counter = self.temporary(scalar)
        self.assign(counter, build.convert(low, scalar), statement.span)
        last = self.simple(build.convert(high, scalar))
        after, next_round = self.new_label(), self.new_label()
        with self.collecting() as body:
            self._bind_variable(statement, counter)
            self._round(statement.body, after, next_round)
        rounds: list[Stmt] = labeled(next_round, body, statement.span)
        with self.collecting() as advance:
            # The last round leaves before the counter could wrap.
            self.emit_if_equal(counter, last, after, statement)
            self.assign(counter, build.binary("+", counter, build.constant(1, scalar)), statement.span)
        loop = Loop([], build.binary("<=", counter, last), rounds + advance, statement.span)
        self.out += labeled(after, [loop], statement.span)

    def emit_if_equal(self, left: Expr, right: Expr, label: int, statement: ast.ForIn) -> None:
        """Jump when two values are equal."""
        from compiler.ir import If

        self.emit(If(build.binary("==", left, right), [Jump(label)], [], statement.span))
