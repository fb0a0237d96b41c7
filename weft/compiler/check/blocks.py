"""Checking of controls, parsers and packages (specification, sections 13, 14, 15)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.compiler import ast
from weft.compiler.check.base import Context
from weft.compiler.check.functions import Functions
from weft.compiler.check.scope import hint
from weft.compiler.types import (
    BOOL,
    ERROR,
    INTEGER,
    STRING,
    UNKNOWN,
    BitsType,
    EnumType,
    SetType,
    TupleType,
    Type,
    TypeVariable,
    strip_new,
)


class Blocks(Functions):
    """Their parameters, local declarations, states and bodies."""

    def _control(self, declaration: ast.ControlDeclaration) -> None:
        with self._block(declaration, "control", declaration.body is not None) as inside:
            if inside and declaration.body is not None:
                self.check_block(declaration.body)

    def _parser(self, declaration: ast.ParserDeclaration) -> None:
        with self._block(declaration, "parser", declaration.states is not None) as inside:
            if inside:
                self._states(declaration)

    @contextmanager
    def _block(
        self, declaration: ast.ControlDeclaration | ast.ParserDeclaration, kind: str, has_body: bool
    ) -> Iterator[bool]:
        """A control or parser up to its own statements or states, and whether it has any."""
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope():
            self.check_type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters)
                if not has_body:
                    yield False
                    return
                self._parameters(declaration.constructor_parameters, constructor=True)
                self._differing_names(declaration)
                self._optional_only_without_body(
                    [*declaration.parameters, *declaration.constructor_parameters], f"a {kind}"
                )
                here = Context(kind, declaration.name)
                with self.inside(declaration), self.in_context(here), self.inner_scope():
                    for local in declaration.locals:
                        self.check_declaration(local)
                    yield True

    def _states(self, declaration: ast.ParserDeclaration) -> None:
        assert declaration.states is not None
        with self.inner_scope():
            names = {"accept", "reject"}
            for state in declaration.states:
                if state.name in ("accept", "reject"):
                    self.error(f"the state '{state.name}' is built in and cannot be declared", state)
                self.declare(state)
                names.add(state.name)
            if "start" not in names:
                self.error(f"parser '{declaration.name}' has no state 'start'", declaration)
            for state in declaration.states:
                with self.inner_scope():
                    for statement in state.statements:
                        self.check_statement(statement)
                    self._transition(state, names)
        self._endless(declaration)

    def _transition(self, state: ast.StateDeclaration, names: set[str]) -> None:
        transition = state.transition
        if isinstance(transition, ast.Name):
            self._state_name(transition, names)
        elif isinstance(transition, ast.Select):
            types = []
            for expression in transition.expressions:
                type_ = self.infer(expression)
                if not self._selectable(type_):
                    self.error(f"a select key cannot be of type '{type_}'", expression)
                    type_ = UNKNOWN
                types.append(type_)
            if len(transition.expressions) == 1 and isinstance(transition.expressions[0], ast.ListExpression):
                elements = transition.expressions[0].elements
                types = [element.type or UNKNOWN for element in elements]
            for case in transition.cases:
                self._state_name(case.state, names)
                self.check_keyset(case.keyset, types, "a select case")

    def _selectable(self, type_: Type) -> bool:
        plain = strip_new(type_)
        if isinstance(plain, TupleType):
            return all(self._selectable(element) for element in plain.elements)
        return isinstance(plain, BitsType | EnumType | TypeVariable) or plain in (BOOL, ERROR, UNKNOWN)

    def _state_name(self, name: ast.Name, names: set[str]) -> None:
        if name.name not in names:
            from difflib import get_close_matches

            matches = get_close_matches(name.name, names, 1, 0.7)
            self.error(f"there is no state '{name.name}'{hint(matches[0] if matches else None)}", name)

    def _endless(self, declaration: ast.ParserDeclaration) -> None:
        assert declaration.states is not None
        states = {state.name: state for state in declaration.states}
        reached = {"start"}
        pending = ["start"]
        while pending:
            state = states.get(pending.pop())
            if state is None or state.transition is None:
                continue
            transition = state.transition
            targets = (
                [transition]
                if isinstance(transition, ast.Name)
                else [case.state for case in transition.cases]
            )
            for target in targets:
                if target.name not in reached:
                    reached.add(target.name)
                    pending.append(target.name)
        if (
            "start" in states
            and not reached & {"accept", "reject"}
            and reached <= states.keys()  # a state that is missing is told where it is named
            and not any(states[name].transition is None for name in reached)
        ):
            self.error(f"parser '{declaration.name}' never reaches 'accept' or 'reject'", declaration)

    def _value_set(self, declaration: ast.ValueSetDeclaration) -> None:
        element = self.resolve(declaration.node)
        if element in (INTEGER, STRING):
            self.error(f"a value set cannot hold values of type '{element}'", declaration.node)
            element = UNKNOWN
        self.constant(declaration.size, "a value set's size")
        declaration.type = SetType(element)
        self.declare(declaration)

    def _package(self, declaration: ast.PackageDeclaration) -> None:
        self.type_of_declaration(declaration)
        self.declare(declaration)
        with self.inner_scope():
            self.check_type_parameters(declaration.type_parameters)
            with self.inner_scope():
                self._parameters(declaration.parameters, constructor=True)
