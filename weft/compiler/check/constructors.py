"""Calls of constructors (specification, section 11.3)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.arguments import apply_signature
from weft.compiler.check.context import CheckContext
from weft.compiler.check.overloads import choose
from weft.compiler.check.signatures import parameter_types, signature
from weft.compiler.types import (
    UNKNOWN,
    VOID,
    ControlType,
    ExternType,
    FunctionType,
    PackageType,
    ParserType,
    StructType,
    Type,
    TypeVariable,
    substitute,
    with_arguments,
)
from weft.compiler.warnings.walk import walk


def infer_constructor(context: CheckContext, expression: ast.Call, type_: Type, expected: Type | None) -> Type:
    """`type_(arguments)`; the constructed type with its type arguments."""
    if type_ is UNKNOWN:
        return UNKNOWN
    expression.kind = "constructor"
    if isinstance(type_, ExternType):
        constructors = [
            signature(method)
            for method in type_.declaration.methods
            if method.result is None and method.name == type_.name
        ]
        if not constructors:
            return context.fail(expression, f"'{type_.name}' has no constructor")
    elif isinstance(type_, ControlType | ParserType):
        if (type_.declaration.body if isinstance(type_, ControlType) else type_.declaration.states) is None:
            return context.fail(expression, f"'{type_.name}' is only a type and cannot be instantiated")
        parameters = parameter_types(type_.declaration.constructor_parameters)
        constructors = [FunctionType(type_.name, (), parameters, VOID, type_.declaration)]
    elif isinstance(type_, PackageType):
        parameters = parameter_types(type_.declaration.parameters)
        constructors = [FunctionType(type_.name, (), parameters, VOID, type_.declaration)]
    else:
        message = f"'{type_}' cannot be instantiated"
        if isinstance(type_, StructType):
            message += ": a variable of it is declared without parentheses"
        return context.fail(expression, message)
    variables = tuple(
        parameter.type for parameter in type_.declaration.type_parameters if isinstance(parameter.type, TypeVariable)
    )
    mapping: dict[Type, Type] = dict(zip(variables, type_.arguments, strict=False))
    free = () if type_.arguments else variables
    named = [FunctionType(entry.name, free, entry.parameters, VOID, entry.declaration) for entry in constructors]
    chosen = choose(context, expression, named)
    if chosen is None:
        return UNKNOWN
    if isinstance(expected, type(type_)) and free and expected.declaration is type_.declaration:
        mapping.update(zip(variables, expected.arguments, strict=False))
        chosen = FunctionType(chosen.name, (), chosen.parameters, VOID, chosen.declaration)
    if apply_signature(context, expression, chosen, mapping, None) is UNKNOWN:
        return UNKNOWN
    for argument in expression.ordered:
        if argument is not None and (changing := _changing_name(argument)) is not None:
            context.error(
                f"a constructor's argument must be known at compile time; '{changing.name}' is not",
                argument,
            )
    arguments = tuple(substitute(variable, expression.bindings) for variable in variables)
    expression.target = with_arguments(type_, arguments) if variables else type_
    assert isinstance(expression.target, Type)
    return expression.target


def _changing_name(expression: ast.Node) -> ast.Name | None:
    """A variable or run-time parameter that an expression depends on."""
    for name in walk(expression):
        if not isinstance(name, ast.Name):
            continue
        declaration = name.declaration
        if isinstance(declaration, ast.VariableDeclaration) or (
            isinstance(declaration, ast.Parameter) and declaration.direction
        ):
            return name
    return None
