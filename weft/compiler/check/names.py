"""Typing of names, and of types that stand where a value should (specification, section 6.9)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.scope import TypeDeclaration
from weft.compiler.check.signatures import overload
from weft.compiler.types import MATCH_KIND, STATE, UNKNOWN, ActionType, TableType, Type
from weft.compiler.wording import hint


def infer_name(context: CheckContext, expression: ast.Name, expected: Type | None) -> Type:
    """A name: links it to its declaration, and takes type and value from there."""
    scope = context.scope_of(expression)
    declaration = scope.lookup(expression.name)
    if declaration is None:
        if expression.name in context.symbols.match_kinds:
            expression.value = expression.name
            return MATCH_KIND
        return context.fail(expression, f"'{expression.name}' is not declared{hint(expression.name, scope.visible())}")
    expression.declaration = declaration
    if isinstance(declaration, list):
        if len(declaration) == 1 and context.refers_to_itself(declaration[0], expression):
            return UNKNOWN
        return overload(expression.name, declaration)
    if isinstance(declaration, ast.ConstantDeclaration):
        expression.value = declaration.value
        return declaration.type or UNKNOWN
    if isinstance(
        declaration,
        ast.Parameter | ast.VariableDeclaration | ast.InstanceDeclaration | ast.ValueSetDeclaration,
    ):
        return declaration.type or UNKNOWN
    if isinstance(declaration, ast.ActionDeclaration):
        return ActionType(declaration)
    if isinstance(declaration, ast.TableDeclaration):
        return TableType(declaration)
    if isinstance(declaration, ast.StateDeclaration):
        return STATE
    if isinstance(declaration, TypeDeclaration):
        return context.fail(expression, f"'{expression.name}' is a type, not a value")
    return UNKNOWN


def infer_type_expression(context: CheckContext, expression: ast.TypeExpression, expected: Type | None) -> Type:
    """A type where a value is needed; calls and members handle types on their left themselves."""
    return context.fail(expression, "a type cannot stand here as a value")
