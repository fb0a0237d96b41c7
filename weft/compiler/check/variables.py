"""Checking of constants, variables and value sets (specification, sections 11, 13.11)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import is_storable
from weft.compiler.check.coerce import check_expression
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import constant
from weft.compiler.check.type_nodes import resolve
from weft.compiler.types import INTEGER, STRING, UNKNOWN, SetType


def check_variable(context: CheckContext, declaration: ast.VariableDeclaration) -> None:
    """A variable; its name is in scope after its initialiser."""
    type_ = resolve(context, declaration.node)
    if not is_storable(type_):
        context.error(f"a variable cannot be of type '{type_}'", declaration.node)
        type_ = UNKNOWN
    declaration.type = type_
    if declaration.initial is not None:
        check_expression(context, declaration.initial, type_)
    context.declare(declaration)


def check_constant(context: CheckContext, declaration: ast.ConstantDeclaration) -> None:
    """A constant; constructor parameters in it are resolved when instantiated."""
    declaration.type = resolve(context, declaration.node)
    if check_expression(context, declaration.initial, declaration.type) and declaration.initial.type is not UNKNOWN:
        declaration.value = declaration.initial.value
        if declaration.value is None and context.enclosing.kind == "top":
            context.error(
                f"the value of constant '{declaration.name}' is not known at compile time",
                declaration.initial,
            )
    context.declare(declaration)


def check_value_set(context: CheckContext, declaration: ast.ValueSetDeclaration) -> None:
    """`value_set<type>(size) name`."""
    element = resolve(context, declaration.node)
    if element in (INTEGER, STRING):
        context.error(f"a value set cannot hold values of type '{element}'", declaration.node)
        element = UNKNOWN
    constant(context, declaration.size, "a value set's size")
    declaration.type = SetType(element)
    context.declare(declaration)
