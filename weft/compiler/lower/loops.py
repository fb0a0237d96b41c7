"""Loops: unrolled when their bounds are known, else jumps within an action (specification, section 12.8)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, Jump, Loop, Stmt
from weft.compiler.lower import build
from weft.compiler.lower.calls import Calls
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.labels import labeled
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.values import StackValue, StructValue
from weft.compiler.types import BitsType

# Longer loops become jumps, where the place allows it.
UNROLL_LIMIT = 256


class LoopBounds(Calls):
    """for (…;…;…) and for (… in …)."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.break_labels: list[int] = []
        self.continue_labels: list[int] = []
        self._written: dict[int, set[str]] = {}

    def statement(self, statement: ast.Node) -> None:
        """One statement."""
        raise NotImplementedError

    def _written_in(self, node: ast.Node) -> set[str]:
        """As `written_names`, which is asked about the same node in every round."""
        found = self._written.get(id(node))
        if found is None:
            found = self._written[id(node)] = written_names(node)
        return found

    def for_loop(self, statement: ast.For) -> None:
        """for (initialisers; condition; updates) body: unrolled when it only counts, else a loop of jumps."""
        rounds = self._count_rounds(statement)
        if rounds is not None:
            self._unroll_rounds(statement, rounds)
            return
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

    def _counters(self, statement: ast.For) -> list[ast.VariableDeclaration]:
        """Variables declared by the loop that its body leaves alone."""
        changed = self._written_in(statement.body)
        return [
            entry
            for entry in statement.initialisers
            if isinstance(entry, ast.VariableDeclaration)
            and entry.initial is not None
            and entry.name not in changed
        ]

    def _count_rounds(self, statement: ast.For) -> list[dict[int, Const]] | None:
        """The counters' values in every round (and after the last), or None when they are not known."""
        counters = {entry.name: entry for entry in self._counters(statement)}
        values: dict[int, Const] = {}
        for entry in counters.values():
            scalar = scalar_type(self.frame.type(entry.type))
            known = self._known_value(entry.initial)
            if known is None or not isinstance(scalar, BitsType):
                return None
            values[id(entry)] = build.constant(int(known.value), scalar)
        if not counters or any(entry not in counters.values() for entry in statement.initialisers):
            return None
        rounds = [values]
        self.unrolled.take(1, statement.span)
        while len(rounds) <= UNROLL_LIMIT:
            with self.in_frame(Frame(self.frame, self.frame.path)) as inner:
                inner.values.update(rounds[-1])
                condition = self._known_value(statement.condition)
                if condition is None:
                    return None
                if not condition.value:
                    return rounds
                self.unrolled.take(1, statement.span)
                following = self._next_values(statement, counters, rounds[-1])
            if following is None:
                return None
            rounds.append(following)
        return None

    def _next_values(
        self, statement: ast.For, counters: dict[str, ast.VariableDeclaration], values: dict[int, Const]
    ) -> dict[int, Const] | None:
        following = dict(values)
        for update in statement.updates:
            target = update.target if isinstance(update, ast.Assignment) else None
            if not isinstance(target, ast.Name) or target.name not in counters:
                continue
            assert isinstance(update, ast.Assignment)
            known = self._known_value(update.combined or update.expression)
            if known is None:
                return None
            key = id(counters[target.name])
            following[key] = build.constant(int(known.value), following[key].type)
            self.frame.values[key] = following[key]
        return following

    def _known_value(self, expression: ast.Expression | None) -> Const | None:
        if expression is None or self._written_in(expression):
            return None
        with self.collecting() as code:
            value = self.value(expression)
        return value if isinstance(value, Const) and not code else None

    def _unroll_rounds(self, statement: ast.For, rounds: list[dict[int, Const]]) -> None:
        after = self.new_label()
        with self.collecting() as whole:
            for index, values in enumerate(rounds[:-1]):
                next_round = self.new_label()
                self.frame.values.update(values)
                with self.collecting() as body:
                    self._round(statement.body, after, next_round)
                self.out += labeled(next_round, body, statement.span)
                if self.out and isinstance(self.out[-1], Jump):
                    break
                self._other_updates(statement, rounds[index])
        self.out += labeled(after, whole, statement.span)

    def _other_updates(self, statement: ast.For, values: dict[int, Const]) -> None:
        """Updates of variables other than the counters."""
        names = {entry.name for entry in self._counters(statement) if id(entry) in values}
        for update in statement.updates:
            target = update.target if isinstance(update, ast.Assignment) else None
            if not isinstance(target, ast.Name) or target.name not in names:
                self.statement(update)

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

    def _bind_variable(self, statement: ast.ForIn, value: Any) -> None:
        variable = statement.variable
        type_ = self.frame.type(variable.type)
        scalar = scalar_type(type_)
        if isinstance(value, Expr) and isinstance(scalar, BitsType):
            value = build.convert(value, scalar)
        if variable.name in self._written_in(statement.body):
            # What the body writes is its own copy.
            local = self.frame.values.get(id(variable))
            if local is None or isinstance(local, Const):
                local = self.temporary(type_, variable.name)
            self.assign(local, value, statement.span)
            value = local
        self.frame.bind(variable, value)

    def _unroll(self, statement: ast.ForIn, values: list[Any]) -> None:
        self.unrolled.take(len(values), statement.span)
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
        scalar = scalar_type(self.frame.type(statement.variable.type))
        if scalar is None:
            self.refuse(
                f"a loop of more than {UNROLL_LIMIT} rounds needs a variable of a type with a width",
                statement.variable,
            )
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
        from weft.compiler.ir import If

        self.emit(If(build.binary("==", left, right), [Jump(label)], [], statement.span))


def written_names(node: object) -> set[str]:
    """Names that a tree assigns to, or passes where a callee may write."""
    found: set[str] = set()
    _collect_written(node, found)
    return found


def _collect_written(node: object, found: set[str]) -> None:
    if isinstance(node, list | tuple):
        for item in node:
            _collect_written(item, found)
        return
    if not isinstance(node, ast.Node):
        return
    if isinstance(node, ast.Assignment):
        _add_root(node.target, found)
    elif isinstance(node, ast.Call):
        for argument in node.ordered:
            _add_root(argument, found)
    for entry in fields(node):
        if entry.name not in ("span", "declaration", "target", "ordered", "bindings", "type", "combined"):
            _collect_written(getattr(node, entry.name), found)
    if isinstance(node, ast.Assignment):
        _collect_written(node.target, found)


def _add_root(expression: object, found: set[str]) -> None:
    while isinstance(expression, ast.Member | ast.Index | ast.Slice):
        expression = expression.base
    if isinstance(expression, ast.Name):
        found.add(expression.name)
