"""Choice of an overload (specification, section 8.20)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.unify import unify
from weft.compiler.types import FunctionType, Type


def choose(context: CheckContext, expression: ast.Call, functions: Sequence[FunctionType]) -> FunctionType | None:
    """The overload that the arguments' number and names fit; reports when there is none."""
    fitting = [function for function in functions if _fits(expression, function)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        if len(functions) == 1:
            return functions[0]
        diagnostic = context.error(f"no '{functions[0].name}' takes these arguments", expression)
        for function in functions:
            where = function.declaration.span if function.declaration else None
            diagnostic.note(f"candidate: {function}", where)
        return None
    types = [infer(context, argument.expression) for argument in expression.arguments if argument.expression]
    matching: list[FunctionType] = []
    for function in fitting:
        variables: set[Type] = set(function.variables)
        pairs = zip(function.parameters, types, strict=False)
        if all(unify(parameter.type, type_, variables, {}) for parameter, type_ in pairs):
            matching.append(function)
    if len(matching) > 1:
        diagnostic = context.error(f"several '{functions[0].name}' take these arguments", expression)
        for function in matching:
            where = function.declaration.span if function.declaration else None
            diagnostic.note(f"candidate: {function}", where)
        return None
    return matching[0] if matching else fitting[0]


def _fits(expression: ast.Call, function: FunctionType) -> bool:
    given = expression.arguments
    names = {parameter.name for parameter in function.parameters}
    named = {argument.name for argument in given if argument.name is not None}
    if not named <= names or len(given) > len(function.parameters):
        return False
    required = [parameter.name for parameter in function.parameters if not parameter.optional]
    positional = [parameter.name for parameter in function.parameters[: len(given) - len(named)]]
    return set(required) <= named | set(positional)
