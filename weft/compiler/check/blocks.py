"""Checking of controls, parsers and packages (specification, sections 13, 14, 15)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft.compiler import ast
from weft.compiler.check.context import CheckContext, Enclosing
from weft.compiler.check.declarations import check_declaration
from weft.compiler.check.parameters import (
    check_differing_names,
    check_no_optional,
    check_parameters,
    check_type_parameters,
)
from weft.compiler.check.statements import check_block
from weft.compiler.check.states import check_states
from weft.compiler.check.type_nodes import type_of_declaration


def check_control(context: CheckContext, declaration: ast.ControlDeclaration) -> None:
    """A control: parameters, local declarations, body."""
    with _block(context, declaration, "control", declaration.body is not None) as inside:
        if inside and declaration.body is not None:
            check_block(context, declaration.body)


def check_parser(context: CheckContext, declaration: ast.ParserDeclaration) -> None:
    """A parser: parameters, local declarations, states."""
    with _block(context, declaration, "parser", declaration.states is not None) as inside:
        if inside:
            check_states(context, declaration)


@contextmanager
def _block(
    context: CheckContext,
    declaration: ast.ControlDeclaration | ast.ParserDeclaration,
    kind: str,
    has_body: bool,
) -> Iterator[bool]:
    """A control or parser up to its own statements or states, and whether it has any."""
    type_of_declaration(context, declaration)
    context.declare(declaration)
    with context.inner_scope():
        check_type_parameters(context, declaration.type_parameters)
        with context.inner_scope():
            check_parameters(context, declaration.parameters)
            if not has_body:
                yield False
                return
            check_parameters(context, declaration.constructor_parameters, constructor=True)
            check_differing_names(context, declaration)
            check_no_optional(context, [*declaration.parameters, *declaration.constructor_parameters], f"a {kind}")
            here = Enclosing(kind, declaration.name)
            with context.inside(declaration), context.within(here), context.inner_scope():
                for local in declaration.locals:
                    check_declaration(context, local)
                yield True


def check_package(context: CheckContext, declaration: ast.PackageDeclaration) -> None:
    """A package type: its parameters."""
    type_of_declaration(context, declaration)
    context.declare(declaration)
    with context.inner_scope():
        check_type_parameters(context, declaration.type_parameters)
        with context.inner_scope():
            check_parameters(context, declaration.parameters, constructor=True)
