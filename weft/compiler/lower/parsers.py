"""Parsers: states, select, sub-parsers; conditions within a state become states of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.compiler import ast
from weft.compiler.budgets import SELECT_ALTERNATIVES
from weft.compiler.ir import (
    Expr,
    FieldRef,
    If,
    Jump,
    KeysetMatch,
    Labeled,
    LastField,
    Loop,
    ParseState,
    Stmt,
    UnionLastField,
    ValueSet,
    Verify,
    bit_width,
)
from weft.compiler.lower import build
from weft.compiler.lower.blocks import Blocks
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.select import combination_count, combine
from weft.compiler.lower.values import BlockValue, SetValue, StructValue
from weft.compiler.source import Span
from weft.compiler.types import BOOL, SetType, bits, width_of

NO_MATCH_STATE = "noMatch"


class _SubParser(Stmt):
    """Marks, among a state's statements, where a sub-parser runs."""

    __slots__ = ("block", "frame", "span")

    def __init__(self, block: BlockValue, frame: Frame, span: Span) -> None:
        self.block = block
        self.frame = frame
        self.span = span


class Parsers(Blocks):
    """`lower_parser` fills the program's parse states."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.value_set_sources: dict[str, tuple[ast.ValueSetDeclaration, Frame]] = {}

    def value_set_size(self, name: str) -> int:
        """The declared size of a value set."""
        return next(entry.size for entry in self.program.value_sets if entry.name == name)

    def lower_parser(self, block: BlockValue, arguments: Sequence[Any]) -> None:
        """The parser of the pipeline; its arguments are values."""
        declaration = block.declaration
        assert isinstance(declaration, ast.ParserDeclaration)
        self.place = "parser"
        frame = Frame(self.instance_frame(block), block.name, block.bindings)
        for parameter, value in zip(declaration.parameters, arguments, strict=True):
            frame.bind(parameter, value)
        with self.in_frame(frame), self.collecting() as first:
            self._locals(declaration, frame)
        self._states(declaration, frame, "", None, first)

    def _locals(self, declaration: ast.ParserDeclaration, frame: Frame) -> None:
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                self.variable(local)
            elif isinstance(local, ast.ValueSetDeclaration):
                self._value_set(local, frame)

    def _value_set(self, local: ast.ValueSetDeclaration, frame: Frame) -> None:
        assert isinstance(local.type, SetType)
        name = frame.name_of(local)
        width = width_of(frame.type(local.type.element))
        size = self.value(local.size)
        if width is None:
            self.refuse("a value set needs a type of known width", local)
        members = self.control_plane_size(size, f"the size of value set '{name}'", local.size)
        if not any(known.name == name for known in self.program.value_sets):
            self.program.value_sets.append(ValueSet(name, width, members))
        self.value_set_sources[name] = (local, frame)
        frame.bind(local, SetValue(name))

    # ------------------------------------------------------------------------------ states

    def _states(
        self,
        declaration: ast.ParserDeclaration,
        frame: Frame,
        prefix: str,
        accept: str | None,
        first: list[Stmt],
    ) -> str:
        """All states of one parser instance; `accept` is where its end leads. Returns the start's name."""
        assert declaration.states is not None
        names = {"accept": accept, "reject": None}
        for state in declaration.states:
            wanted = state.name if not prefix else f"{prefix}_{state.name}"
            names[state.name] = wanted if wanted == "start" else self.storage.unique(wanted)
        for state in declaration.states:
            name = names[state.name]
            assert name is not None
            with self.in_frame(Frame(frame, frame.path)) as inner, self.collecting() as code:
                if state.name == "start":
                    self.out += first
                self.statements(state.statements)
                keys, matches = self._transition(state, names, inner)
            self._emit_state(name, code, keys, matches, state.span)
        start = names["start"]
        assert start is not None
        return start

    def _transition(
        self, state: ast.StateDeclaration, names: dict[str, str | None], frame: Frame
    ) -> tuple[list[Expr], list[KeysetMatch]]:
        transition = state.transition
        if transition is None:
            return [], [KeysetMatch(None, None, None, None)]
        if isinstance(transition, ast.Name):
            return [], [KeysetMatch(None, None, None, names[transition.name])]
        return self._select(transition, names)

    def _select(
        self, select: ast.Select, names: dict[str, str | None]
    ) -> tuple[list[Expr], list[KeysetMatch]]:
        keys: list[Expr] = []
        for expression in select.expressions:
            keys += self._select_keys(expression)
        for case in select.cases:
            if len(select.cases) and self._is_default(case.keyset) and case is select.cases[0]:
                return [], [KeysetMatch(None, None, None, names[case.state.name])]
        widths = [bit_width(key.type) for key in keys]
        matches: list[KeysetMatch] = []
        complete = False
        for case in select.cases:
            matches += self._case(case, widths, names)
            if self._is_default(case.keyset):
                complete = True
                break
        if not complete:
            matches.append(KeysetMatch(None, None, None, self._no_match()))
        return keys, matches

    def _is_default(self, keyset: ast.Expression) -> bool:
        if isinstance(keyset, ast.KeysetTuple):
            return all(isinstance(element, ast.DefaultExpression) for element in keyset.elements)
        return isinstance(keyset, ast.DefaultExpression)

    def _select_keys(self, expression: ast.Expression) -> list[Expr]:
        value = self.value(expression)
        if isinstance(value, StructValue):
            return [self._select_key(leaf, expression) for leaf in self.leaves(value, expression)]
        return [self._select_key(value, expression)]

    def _select_key(self, value: Any, where: ast.Expression) -> Expr:
        # Not a lookahead: in a key, BMv2 reads on behind the packet's end; in an assignment it ends the parser.
        if isinstance(value, FieldRef | LastField | UnionLastField):
            return value
        if not isinstance(value, Expr):
            self.refuse("a select key is a bit, int, bool, enum or error value", where)
        if value.type is BOOL:
            value = build.convert(value, bits(1))
        copy = self.temporary(value.type, "select_key")
        self.assign(copy, value, where.span)
        return copy  # type: ignore[no-any-return]

    def _case(
        self, case: ast.SelectCase, widths: list[int], names: dict[str, str | None]
    ) -> list[KeysetMatch]:
        target = names[case.state.name]
        keyset = case.keyset
        if self._is_default(keyset):
            return [KeysetMatch(None, None, None, target)]
        elements = keyset.elements if isinstance(keyset, ast.KeysetTuple | ast.ListExpression) else [keyset]
        if len(elements) == 1 and isinstance(elements[0], ast.Name):
            declaration = elements[0].declaration
            if isinstance(declaration, ast.ValueSetDeclaration):
                value = self.value(elements[0])
                assert isinstance(value, SetValue)
                return [KeysetMatch(None, None, value.name, target)]
        flat: list[object] = []
        for element in elements:
            if isinstance(element, ast.ListExpression):
                flat += [self.keyset_value(part) for part in element.elements]
            elif isinstance(element, ast.Name) and isinstance(element.declaration, ast.ValueSetDeclaration):
                self.refuse("BMv2 matches a value set against all keys of a select at once", element)
            else:
                flat.append(self.keyset_value(element))
        count = combination_count(flat, widths)
        if count > SELECT_ALTERNATIVES:
            self.refuse(
                f"the ranges of this case need {count} transitions, more than {SELECT_ALTERNATIVES}", case
            )
        return [KeysetMatch(value, mask, None, target) for value, mask in combine(flat, widths)]

    def _no_match(self) -> str:
        """The state that raises NoMatch, made on first use."""
        if not any(state.name == NO_MATCH_STATE for state in self.program.states):
            number = self.program.errors.get("NoMatch", 0)
            failing = Verify(build.FALSE, build.constant(number, bits(32)))
            end = [KeysetMatch(None, None, None, None)]
            self.program.states.append(ParseState(NO_MATCH_STATE, [failing], [], end))
        return NO_MATCH_STATE

    # ------------------------------------------------------------------------------ splitting

    def apply_block(self, block: BlockValue, arguments: Sequence[Any], call: ast.Call) -> None:
        """A sub-parser (in a parser) or a control."""
        declaration = block.declaration
        if not isinstance(declaration, ast.ParserDeclaration):
            super().apply_block(block, arguments, call)
            return
        if self.place != "parser":
            self.refuse("a parser can be applied in a parser's state only", call)
        frame = Frame(self.instance_frame(block), block.name, self._block_bindings(block, call))
        copy_out = self.bind_arguments(declaration.parameters, arguments, frame, None, call)
        with self.in_frame(frame):
            self._locals(declaration, frame)
        self.emit(_SubParser(block, frame, call.span))
        self.copy_back(copy_out, call.span)

    def _emit_state(
        self, name: str, code: list[Stmt], keys: list[Expr], matches: list[KeysetMatch], span: Span | None
    ) -> None:
        """A state, split where its statements branch; labels resolve to the states after them."""
        self._split(name, code, lambda last: self._finish(last, keys, matches, span), {}, span)

    def _finish(
        self, state: tuple[str, list[Stmt]], keys: list[Expr], matches: list[KeysetMatch], span: Span | None
    ) -> None:
        name, operations = state
        self.program.states.append(ParseState(name, operations, keys, matches, span))

    def _goto(self, name: str, operations: list[Stmt], target: str | None, span: Span | None) -> None:
        matches = [KeysetMatch(None, None, None, target)]
        self.program.states.append(ParseState(name, operations, [], matches, span))

    def _ending_at(self, target: str, span: Span | None) -> Callable[[tuple[str, list[Stmt]]], None]:
        """How to finish a state that goes on at `target`."""
        return lambda last: self._goto(last[0], last[1], target, span)

    def _split(
        self, name: str, code: list[Stmt], finish: Any, labels: dict[int, str], span: Span | None
    ) -> None:
        """Emit `code` as the state `name`, then `finish((last state's name, its operations))`."""
        for index, statement in enumerate(code):
            if not isinstance(statement, If | Labeled | Jump | Loop | _SubParser):
                continue
            before, after = code[:index], code[index + 1 :]
            if isinstance(statement, Jump):
                self._goto(name, before, labels[statement.label], span)
                return
            if isinstance(statement, Loop):
                self.refuse("a loop in a parser needs bounds known at compile time", statement.span)
            rest = self.storage.unique(f"{name}_join")
            if isinstance(statement, If):
                self._branch_states(name, before, statement, rest, labels, span)
            elif isinstance(statement, Labeled):
                inner = {**labels, statement.label: rest}
                body = before + statement.body
                self._split(name, body, self._ending_at(rest, span), inner, span)
            else:
                declaration = statement.block.declaration
                assert isinstance(declaration, ast.ParserDeclaration)
                self.inlined.take(1, statement.span)
                prefix = statement.block.name.rsplit(".", 1)[-1]
                start = self._states(declaration, statement.frame, prefix, rest, [])
                self._goto(name, before, start, span)
            self._split(rest, after, finish, labels, span)
            return
        finish((name, code))

    def _branch_states(
        self,
        name: str,
        before: list[Stmt],
        statement: If,
        rest: str,
        labels: dict[int, str],
        span: Span | None,
    ) -> None:
        with self.collecting() as code:
            key = self._select_condition(statement.condition)
        targets: list[str] = []
        for branch, suffix in ((statement.then, "true"), (statement.otherwise, "false")):
            targets.append(self.storage.unique(f"{name}_{suffix}") if branch else rest)
        matches = [KeysetMatch(1, 0xFF, None, targets[0]), KeysetMatch(None, None, None, targets[1])]
        self.program.states.append(ParseState(name, before + code, [key], matches, statement.span))
        for branch, target in zip((statement.then, statement.otherwise), targets, strict=True):
            if branch:
                self._split(target, branch, self._ending_at(rest, span), labels, span)

    def _select_condition(self, condition: Expr) -> Expr:
        copy = self.temporary(bits(1), "condition")
        self.assign(copy, build.convert(condition, bits(1)), None)
        return copy  # type: ignore[no-any-return]
