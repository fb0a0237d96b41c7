"""Checking of declarations: the dispatch."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.annotations import check_annotations
from weft.compiler.check.context import CheckContext


def check_declaration(context: CheckContext, declaration: ast.Declaration) -> None:
    """One declaration of any kind, declared in the current scope."""
    check_annotations(context, declaration)
    at_top = context.enclosing.kind == "top"
    if at_top and declaration.name == "main" and not isinstance(declaration, ast.InstanceDeclaration):
        context.error("'main' is an instance of a package", declaration)
    context.declarations[type(declaration)](context, declaration)
