"""Tells which expressions a program may write to (specification, section 6.7)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.types import UNKNOWN, ExternType, StackType, StructType


def check_writable(context: CheckContext, expression: ast.Expression, what: str) -> bool:
    """Whether an expression can be written to; reports why not."""
    if isinstance(expression, ast.Name):
        declaration = expression.declaration
        if isinstance(declaration, ast.VariableDeclaration):
            return True
        if isinstance(declaration, ast.Parameter):
            if declaration.direction in ("out", "inout"):
                return True
            if isinstance(declaration.type, ExternType):
                return True
            kind = (
                f"an '{declaration.direction}' parameter" if declaration.direction else "a parameter without direction"
            )
            context.error(f"{what} cannot write to '{expression.name}': it is {kind}", expression).note(
                "declared here", declaration.span
            )
            return False
        if expression.type is not UNKNOWN:
            kind = "it is a constant" if isinstance(declaration, ast.ConstantDeclaration) else "it is no variable"
            context.error(f"{what} cannot write to '{expression.name}': {kind}", expression)
        return False
    if isinstance(expression, ast.Member) and not isinstance(expression.base, ast.TypeExpression):
        base = expression.base.type
        if isinstance(base, StackType) and expression.name in ("size", "lastIndex"):
            context.error(f"{what} cannot write to '{expression.name}'", expression)
            return False
        if isinstance(base, StructType | StackType):
            return check_writable(context, expression.base, what)
    if isinstance(expression, ast.Index | ast.Slice):
        return check_writable(context, expression.base, what)
    if expression.type is not UNKNOWN:
        context.error(f"{what} needs something that can be written to", expression)
    return False
