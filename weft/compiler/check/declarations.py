"""Checking of declarations: the dispatch, and whole programs.

How each kind of declaration is checked is a rule in a table by the node's class; `type_declarations`, `functions`,
`blocks`, `tables`, `variables` and `instances` register theirs. So no imports form a cycle although blocks hold
declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft.compiler import ast
from weft.compiler.check.annotations import check_annotations, check_structured_annotation
from weft.compiler.check.context import CheckContext, Symbols
from weft.compiler.diagnostics import Diagnostics

AnyDeclaration = TypeVar("AnyDeclaration", bound=ast.Declaration)
Rule = Callable[[CheckContext, AnyDeclaration], None]

_RULES: dict[type[ast.Declaration], Rule[Any]] = {}


def declaration_rule(kind: type[AnyDeclaration]) -> Callable[[Rule[AnyDeclaration]], Rule[AnyDeclaration]]:
    """Register the rule for a class of declarations."""

    def register(rule: Rule[AnyDeclaration]) -> Rule[AnyDeclaration]:
        _RULES[kind] = rule
        return rule

    return register


def check_program(program: ast.Program, diagnostics: Diagnostics) -> Symbols:
    """Check all declarations in order; annotates the tree in place and returns what it declares."""
    context = CheckContext(diagnostics)
    for declaration in program.declarations:
        check_declaration(context, declaration)
    for annotation in program.structured_annotations:
        check_structured_annotation(context, annotation)
    return context.symbols


def check_declaration(context: CheckContext, declaration: ast.Declaration) -> None:
    """One declaration of any kind, declared in the current scope."""
    check_annotations(context, declaration)
    at_top = context.enclosing.kind == "top"
    if at_top and declaration.name == "main" and not isinstance(declaration, ast.InstanceDeclaration):
        context.error("'main' is an instance of a package", declaration)
    _RULES[type(declaration)](context, declaration)
