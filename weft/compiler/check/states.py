"""Checking of parser states (specification, sections 13.4 to 13.6)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.keysets import check_keyset
from weft.compiler.check.statements import check_statement
from weft.compiler.types import (
    BOOL,
    ERROR,
    UNKNOWN,
    BitsType,
    EnumType,
    TupleType,
    Type,
    TypeVariable,
    strip_new,
)
from weft.compiler.wording import hint


def check_states(context: CheckContext, declaration: ast.ParserDeclaration) -> None:
    """The states of a parser that has a body, their statements and transitions."""
    assert declaration.states is not None
    with context.inner_scope():
        names = {"accept", "reject"}
        for state in declaration.states:
            if state.name in ("accept", "reject"):
                context.error(f"the state '{state.name}' is built in and cannot be declared", state)
            context.declare(state)
            names.add(state.name)
        if "start" not in names:
            context.error(f"parser '{declaration.name}' has no state 'start'", declaration)
        for state in declaration.states:
            with context.inner_scope():
                for statement in state.statements:
                    check_statement(context, statement)
                _transition(context, state, names)
    _endless(context, declaration)


def _transition(context: CheckContext, state: ast.StateDeclaration, names: set[str]) -> None:
    transition = state.transition
    if isinstance(transition, ast.Name):
        _state_name(context, transition, names)
    elif isinstance(transition, ast.Select):
        types = []
        for expression in transition.expressions:
            type_ = infer(context, expression)
            if not _selectable(type_):
                context.error(f"a select key cannot be of type '{type_}'", expression)
                type_ = UNKNOWN
            types.append(type_)
        if len(transition.expressions) == 1 and isinstance(transition.expressions[0], ast.ListExpression):
            elements = transition.expressions[0].elements
            types = [element.type or UNKNOWN for element in elements]
        for case in transition.cases:
            _state_name(context, case.state, names)
            check_keyset(context, case.keyset, types, "a select case")


def _selectable(type_: Type) -> bool:
    plain = strip_new(type_)
    if isinstance(plain, TupleType):
        return all(_selectable(element) for element in plain.elements)
    return isinstance(plain, BitsType | EnumType | TypeVariable) or plain in (BOOL, ERROR, UNKNOWN)


def _state_name(context: CheckContext, name: ast.Name, names: set[str]) -> None:
    if name.name not in names:
        context.error(f"there is no state '{name.name}'{hint(name.name, names)}", name)


def _endless(context: CheckContext, declaration: ast.ParserDeclaration) -> None:
    assert declaration.states is not None
    states = {state.name: state for state in declaration.states}
    reached = {"start"}
    pending = ["start"]
    while pending:
        state = states.get(pending.pop())
        if state is None or state.transition is None:
            continue
        transition = state.transition
        targets = [transition] if isinstance(transition, ast.Name) else [case.state for case in transition.cases]
        for target in targets:
            if target.name not in reached:
                reached.add(target.name)
                pending.append(target.name)
    if (
        "start" in states
        and not reached & {"accept", "reject"}
        and reached <= states.keys()  # a state that is missing is reported where it is named
        and not any(states[name].transition is None for name in reached)
    ):
        context.error(f"parser '{declaration.name}' never reaches 'accept' or 'reject'", declaration)
