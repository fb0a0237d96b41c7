"""Variables and constants."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Expr
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign, invalidate
from weft.compiler.lower.context import Context
from weft.compiler.lower.conversions import retyped
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.storage import scalar_type
from weft.compiler.types import INTEGER


def declare_variable(context: Context, declaration: ast.VariableDeclaration, keep: bool = False) -> None:
    """A variable: allocated (or, with `keep`, reused), initialised; headers start invalid."""
    type_ = context.frame.type(declaration.type)
    value = context.frame.values.get(id(declaration)) if keep else None
    if value is None:
        value = context.storage.allocate(type_, declaration.name)
    if declaration.initial is None:
        invalidate(context, value, declaration.span)
    else:
        initial = evaluate(context, declaration.initial)
        if not isinstance(initial, Expr) and scalar_type(type_) is None:
            initial = retyped(initial, type_)
        assign(context, value, initial, declaration.span)
    context.frame.bind(declaration, value)


def declare_constant(context: Context, declaration: ast.ConstantDeclaration) -> None:
    """A local constant."""
    if declaration.value is None or isinstance(declaration.value, list | dict):
        value = evaluate(context, declaration.initial)
        type_ = context.frame.type(declaration.type)
        if isinstance(value, Expr) and type_ is not INTEGER:
            value = build.convert(value, scalar_type(type_) or value.type)
        context.frame.bind(declaration, value)
