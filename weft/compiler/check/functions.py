"""Checking of functions, externs and actions (specification, sections 6.8, 10, 14.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.context import CheckContext, Enclosing
from weft.compiler.check.parameters import (
    check_differing_names,
    check_no_optional,
    check_parameters,
    check_type_parameters,
)
from weft.compiler.check.signatures import parameter_types
from weft.compiler.check.statements import check_block
from weft.compiler.check.type_nodes import resolve, type_of_declaration
from weft.compiler.types import INTEGER, VOID, ExternType, FunctionType


def check_function(context: CheckContext, declaration: ast.FunctionDeclaration) -> None:
    """A function or extern function: its signature, and its body if it has one."""
    _check_signature(context, declaration)
    check_differing_names(context, declaration)
    context.declare(declaration)
    if declaration.body is None:
        return
    check_no_optional(context, declaration.parameters, "a function")
    with context.inner_scope(), context.inside(declaration):
        for parameter in declaration.type_parameters:
            context.declare(parameter)
        with context.inner_scope():
            for parameter_ in declaration.parameters:
                context.declare(parameter_)
            result = declaration.signature.result
            with context.within(Enclosing("function", declaration.name, result)):
                check_block(context, declaration.body)
            if result is not VOID and not returns(declaration.body):
                context.error(f"function '{declaration.name}' may end without returning its '{result}'", declaration)


def check_extern(context: CheckContext, declaration: ast.ExternDeclaration) -> None:
    """An extern object: the signatures of its methods."""
    type_of_declaration(context, declaration)
    context.declare(declaration)
    with context.inner_scope(), context.inside(declaration):
        check_type_parameters(context, declaration.type_parameters)
        for method in declaration.methods:
            if method.name == declaration.name and method.result is not None:
                context.error(f"the constructor of '{declaration.name}' returns nothing", method)
            _check_signature(context, method)


def check_action(context: CheckContext, declaration: ast.ActionDeclaration) -> None:
    """An action: parameters and body."""
    with context.inner_scope():
        check_parameters(context, declaration.parameters)
        _directions_first(context, declaration)
        with context.within(Enclosing("action", declaration.name)):
            check_block(context, declaration.body)
    context.declare(declaration)


def _directions_first(context: CheckContext, declaration: ast.ActionDeclaration) -> None:
    data_seen: ast.Parameter | None = None
    for parameter in declaration.parameters:
        if isinstance(parameter.type, ExternType) or parameter.type is INTEGER:
            context.error(f"an action's parameter cannot be of type '{parameter.type}'", parameter)
        if not parameter.direction:
            data_seen = parameter
        elif data_seen is not None:
            context.error("parameters with a direction come before those without", parameter).note(
                "a parameter without direction", data_seen.span
            )


def _check_signature(context: CheckContext, declaration: ast.FunctionDeclaration) -> None:
    with context.inner_scope():
        variables = check_type_parameters(context, declaration.type_parameters)
        with context.inner_scope():
            check_parameters(context, declaration.parameters)
        result = VOID if declaration.result is None else resolve(context, declaration.result)
    declaration.signature = FunctionType(
        declaration.name, variables, parameter_types(declaration.parameters), result, declaration
    )


def returns(statement: ast.Node) -> bool:
    """Whether every way through a statement ends in a return (or exit)."""
    if isinstance(statement, ast.Return | ast.Exit):
        return True
    if isinstance(statement, ast.Block):
        return any(returns(inner) for inner in statement.statements)
    if isinstance(statement, ast.If):
        if statement.condition.value is not None:
            chosen = statement.then if statement.condition.value else statement.otherwise
            return chosen is not None and returns(chosen)
        return statement.otherwise is not None and returns(statement.then) and returns(statement.otherwise)
    if isinstance(statement, ast.Switch):
        bodies = [case.body for case in statement.cases if case.body is not None]
        default = any(case.label is None for case in statement.cases)
        return default and all(returns(body) for body in bodies)
    return False
