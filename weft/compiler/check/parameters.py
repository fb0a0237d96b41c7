"""Checking of parameters and type parameters (specification, section 6.8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import parameter_problem
from weft.compiler.check.coerce import check_expression
from weft.compiler.check.context import CheckContext
from weft.compiler.check.type_nodes import resolve, type_of_declaration
from weft.compiler.types import UNKNOWN, TypeVariable


def check_type_parameters(context: CheckContext, parameters: list[ast.TypeParameter]) -> tuple[TypeVariable, ...]:
    """Declare type parameters; returns their variables."""
    variables = []
    for parameter in parameters:
        context.declare(parameter)
        type_ = type_of_declaration(context, parameter)
        assert isinstance(type_, TypeVariable)
        variables.append(type_)
    return tuple(variables)


def check_parameters(
    context: CheckContext, parameters: list[ast.Parameter], declare: bool = True, *, constructor: bool = False
) -> None:
    """Types, directions and defaults of parameters; declares them in the current scope unless `declare` is False."""
    for parameter in parameters:
        parameter.type = resolve(context, parameter.node)
        problem = parameter_problem(parameter.type, parameter.direction, constructor=constructor)
        if problem is not None:
            context.error(problem, parameter)
        if parameter.default is not None and parameter.direction in ("out", "inout"):
            context.error(f"an '{parameter.direction}' parameter has no default", parameter.default)
        elif parameter.default is not None:
            _default(context, parameter, parameter.default)
    for parameter in parameters if declare else ():
        context.declare(parameter)


def check_no_optional(context: CheckContext, parameters: list[ast.Parameter], what: str) -> None:
    """@optional is for externs, packages and types of blocks: a body could not know what it was given."""
    for parameter in parameters:
        if parameter.annotation("optional") is not None:
            context.error(f"{what} with a body has no @optional parameters", parameter)


def check_differing_names(
    context: CheckContext,
    declaration: ast.ControlDeclaration | ast.ParserDeclaration | ast.FunctionDeclaration,
) -> None:
    """Type parameters and parameters share one name space."""
    names = {parameter.name: parameter for parameter in declaration.type_parameters}
    given = list(declaration.parameters)
    if not isinstance(declaration, ast.FunctionDeclaration):
        given += declaration.constructor_parameters
    for parameter in given:
        if parameter.name in names:
            context.error(f"'{parameter.name}' is a type parameter already", parameter).note(
                "declared here", names[parameter.name].span
            )


def _default(context: CheckContext, parameter: ast.Parameter, default: ast.Expression) -> None:
    good = check_expression(context, default, parameter.type or UNKNOWN, f"the default of '{parameter.name}'")
    if good and isinstance(default, ast.Call) and default.kind != "constructor" and default.value is None:
        context.error(f"the default of '{parameter.name}' must be known at compile time", default)
