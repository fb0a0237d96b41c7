"""The graph of a pipeline: tables, conditionals, and keyless tables that hold plain statements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from weft.compiler import ir
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.emit_json.actions import action_primitives
from weft.compiler.emit_json.expressions import condition
from weft.compiler.emit_json.places import source_info
from weft.compiler.lower.labels import branches_of
from weft.compiler.source import Span
from weft.compiler.warnings.kinds import Kind

Json = dict[str, Any]
Node = str | None


class ControlFlow:
    """Builds the nodes of one pipeline from its end to its beginning."""

    def __init__(
        self, program: ir.LoweredProgram, pipeline: ir.Pipeline, diagnostics: Diagnostics, names: set[str]
    ) -> None:
        self.program = program
        self.pipeline = pipeline
        self.diagnostics = diagnostics
        self.names = names
        # Per name: the first number that may be free, so that thousands of equal names are not tried one by one.
        self._numbers: dict[str, int] = {}
        self.conditionals: list[Json] = []
        # Per table: the next node by action name, or by "__HIT__"/"__MISS__", and base_default_next.
        self.next_nodes: dict[str, tuple[dict[str, Node], Node]] = {}
        self.table_order: list[ir.Table] = []
        self._labels: dict[int, Node] = {}
        # Equal nodes with equal successors are one node: a control applied in several places shares its ends.
        self._warned: set[str] = set()
        self._applied_at: dict[str, Span | None] = {}
        self._shared: dict[tuple[object, ...], str] = {}

    def build(self) -> Node:
        """The first node."""
        return self._sequence(self.pipeline.body, None)

    def _sequence(self, statements: Sequence[ir.Stmt], following: Node) -> Node:
        run: list[ir.Stmt] = []
        node = following
        for statement in reversed(statements):
            if isinstance(statement, ir.Jump):
                run = []
                node = self._labels[statement.label]
            elif self._is_plain(statement):
                if isinstance(statement, ir.Exit):
                    run = []
                run.insert(0, statement)
            else:
                node = self._flush(run, node)
                run = []
                node = self._branching(statement, node)
        return self._flush(run, node)

    def _is_plain(self, statement: ir.Stmt) -> bool:
        """Whether it can go into an action as it is."""
        if isinstance(statement, ir.If | ir.Apply):
            return False
        if isinstance(statement, ir.Labeled):
            return not _applies_table(statement) and not _leaves(statement, statement.label)
        return True

    def _branching(self, statement: ir.Stmt, following: Node) -> Node:
        if isinstance(statement, ir.If):
            return self._if(statement, following)
        if isinstance(statement, ir.Labeled):
            self._labels[statement.label] = following
            return self._sequence(statement.body, following)
        assert isinstance(statement, ir.Apply)
        return self._apply(statement, following)

    def _unique(self, name: str) -> str:
        chosen = name
        number = self._numbers.get(name, 0)
        while chosen in self.names:
            chosen = f"{name}_{number}"
            number += 1
        self._numbers[name] = number
        self.names.add(chosen)
        return chosen

    # ------------------------------------------------------------------------------ nodes

    def _if(self, statement: ir.If, following: Node) -> Node:
        if isinstance(statement.condition, ir.Const):
            chosen = statement.then if statement.condition.value else statement.otherwise
            return self._sequence(chosen, following)
        yes = self._sequence(statement.then, following)
        no = self._sequence(statement.otherwise, following)
        if yes == no:
            return yes
        key = ("if", statement.condition, yes, no)
        if key in self._shared:
            return self._shared[key]
        name = self._unique(f"node_{len(self.conditionals) + 2}")
        self._shared[key] = name
        self.conditionals.append(
            {
                "name": name,
                **source_info(statement.span),
                "expression": condition(statement.condition),
                "true_next": yes,
                "false_next": no,
            }
        )
        return name

    def _apply(self, statement: ir.Apply, following: Node) -> Node:
        table = statement.table
        if statement.hit is not None or statement.miss is not None:
            hit = self._sequence(statement.hit or [], following)
            miss = self._sequence(statement.miss or [], following)
            nodes: dict[str, Node] = {"__HIT__": hit, "__MISS__": miss}
            self._connect(table, nodes, None, statement.span)
            return table.name
        branches = statement.branches or {}
        default = following if statement.default is None else self._sequence(statement.default, following)
        nodes = {}
        for action in table.actions:
            body = branches.get(action.name)
            nodes[action.name] = default if body is None else self._sequence(body, following)
        self._connect(table, nodes, following, statement.span)
        return table.name

    def _connect(self, table: ir.Table, nodes: dict[str, Node], base: Node, span: Span | None) -> None:
        known = self.next_nodes.get(table.name)
        if known is not None:
            if known != (nodes, base):
                self.diagnostics.error(
                    f"table '{table.name}' is applied in two places and different statements follow; "
                    "a BMv2 table has one successor (apply it once, before or after the branch)",
                    span,
                ).note("the other place", self._applied_at[table.name])
                raise Refused
            if table.name not in self._warned:
                self._warned.add(table.name)
                self.diagnostics.warning(
                    f"table '{table.name}' is applied in several places; p4c refuses that where other "
                    "statements than one table follow it",
                    span,
                    Kind.UNSUPPORTED,
                )
            return
        self.next_nodes[table.name] = (nodes, base)
        self._applied_at[table.name] = span
        self.table_order.append(table)

    def _flush(self, run: list[ir.Stmt], following: Node) -> Node:
        """Plain statements become a hidden action in a table without keys."""
        if not run:
            return following
        span = run[0].span
        key = ("run", json.dumps(action_primitives(run), sort_keys=True), following)
        if key in self._shared:
            return self._shared[key]
        line = span.first.line_column()[0] if span is not None else len(self.table_order)
        name = self._unique(f"{self.pipeline.name}_act_{line}")
        action = ir.Action(name, [], run, span, hidden=True)
        self.program.actions.append(action)
        table = ir.Table(
            self._unique(f"tbl_{name}"), [], [action], action, [], True, 1024, span, hidden=True
        )  # fmt: skip
        self.pipeline.tables.append(table)
        self._shared[key] = table.name
        self._connect(table, {name: following}, following, span)
        return table.name


def _applies_table(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.Apply) or any(
        _applies_table(inner) for branch in branches_of(statement) for inner in branch
    )


def _leaves(statement: ir.Stmt, label: int) -> bool:
    """Whether a jump inside goes further out than `label`, or the pipeline is left."""
    inside = {label}
    return _jumps_outside(statement, inside)


def _jumps_outside(statement: ir.Stmt, inside: set[int]) -> bool:
    if isinstance(statement, ir.Jump):
        return statement.label not in inside
    if isinstance(statement, ir.Labeled):
        inside = inside | {statement.label}
    return any(_jumps_outside(inner, inside) for branch in branches_of(statement) for inner in branch)
