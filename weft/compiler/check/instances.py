"""Checking of instances (specification, section 11.3)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.types import UNKNOWN, ControlType, ExternType, PackageType, ParserType
from weft.compiler.wording import article


def check_instance(context: CheckContext, declaration: ast.InstanceDeclaration) -> None:
    """An instantiation: its call is checked like any other."""
    callee = ast.TypeExpression(declaration.node.span, declaration.node)
    call = ast.Call(declaration.span, callee, [], declaration.arguments)
    declaration.call = call
    declaration.type = infer(context, call)
    _instance_place(context, declaration)
    if declaration.block is not None:
        context.error(
            f"instance '{declaration.name}' gives bodies to abstract methods, which is not supported",
            declaration,
        )
    context.declare(declaration)


def check_instance_statement(context: CheckContext, declaration: ast.InstanceDeclaration) -> None:
    """An instantiation among statements, where none is possible."""
    check_instance(context, declaration)
    if context.enclosing.kind in ("control", "parser"):
        what = "state" if context.enclosing.kind == "parser" else "apply block"
        context.error(f"nothing can be instantiated in {article(what)}", declaration)


def _instance_place(context: CheckContext, declaration: ast.InstanceDeclaration) -> None:
    type_ = declaration.type
    if context.enclosing.kind in ("function", "action"):
        context.error(f"nothing can be instantiated in {article(context.enclosing.kind)}", declaration)
    elif context.enclosing.kind == "top" and isinstance(type_, ControlType | ParserType):
        context.error(f"'{type_}' is instantiated within a block or as an argument only", declaration)
    elif context.enclosing.kind == "top" and declaration.name == "main":
        if not isinstance(type_, PackageType) and type_ is not UNKNOWN:
            context.error(f"'main' is an instance of a package, not of '{type_}'", declaration)
    elif isinstance(type_, ExternType) and declaration.block is None:
        _refuse_abstract(context, type_, declaration)


def _refuse_abstract(context: CheckContext, type_: ExternType, where: ast.Node) -> None:
    for method in type_.declaration.methods:
        if method.is_abstract:
            context.error(f"'{type_}' has an abstract method: an instance gives it a body", where).note(
                "declared here", method.span
            )
