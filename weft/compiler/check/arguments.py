"""Arguments of calls: type arguments, order, directions (specification, sections 6.8, 8.20)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.allowed_types import BLOCKS, is_storable
from weft.compiler.check.coerce import coerce
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.type_nodes import resolve
from weft.compiler.check.unify import unify, unify_blocks
from weft.compiler.check.writable import check_writable
from weft.compiler.types import (
    INTEGER,
    STATE,
    STRING,
    UNKNOWN,
    ActionType,
    AnonymousStructType,
    ControlType,
    FunctionType,
    OverloadType,
    ParameterType,
    ParserType,
    TableType,
    Type,
    TypeVariable,
    substitute,
)
from weft.compiler.wording import counted


def apply_signature(
    context: CheckContext,
    expression: ast.Call,
    function: FunctionType,
    mapping: dict[Type, Type],
    expected: Type | None,
) -> Type:
    """Bind arguments and type arguments, check them, and give the call its result type."""
    if not _order(context, expression, function):
        return UNKNOWN
    variables: set[Type] = set(function.variables)
    bindings = dict(mapping)
    if expression.type_arguments:
        given = [resolve(context, node) for node in expression.type_arguments]
        if len(given) != len(function.variables):
            return context.fail(
                expression,
                f"'{function.name}' takes {counted(len(function.variables), 'type argument')}, {len(given)} given",
            )
        bindings.update(
            (variable, type_) for variable, type_ in zip(function.variables, given, strict=True) if type_ is not UNKNOWN
        )
    good = True
    for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
        if argument is None:
            continue
        wanted = substitute(parameter.type, bindings)
        found = infer(context, argument, wanted)
        if found is STATE or isinstance(found, OverloadType):
            context.error("a method or function must be called here: its name is no value", argument)
            return UNKNOWN
        if (isinstance(found, BLOCKS) and not isinstance(wanted, BLOCKS)) or isinstance(found, TableType | ActionType):
            return context.fail(expression, f"'{found}' cannot be an argument here", argument)
        if not _unify_argument(wanted, found, variables, bindings):
            good = False
            error = context.error(
                f"argument '{parameter.name}' of '{function.name}': expected '{wanted}', found '{found}'",
                argument,
            )
            if function.declaration is not None:
                error.note(f"'{function.name}' is declared here", parameter.declaration.span)
    if not good:
        return UNKNOWN
    if expected is not None and function.result in variables and function.result not in bindings:
        bindings[function.result] = expected
    for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
        if argument is not None:
            good = _check_argument(context, function, parameter, argument, bindings) and good
    expression.bindings = bindings
    unbound = [variable for variable in function.variables if variable not in bindings]
    if unbound and good and not _inferred_later(function):
        return context.fail(
            expression,
            f"the type argument '{unbound[0]}' of '{function.name}' cannot be inferred; give it in <…>",
        )
    if good and not _definite_arguments(context, expression, function, bindings):
        return UNKNOWN
    return substitute(function.result, bindings) if good else UNKNOWN


def _definite_arguments(
    context: CheckContext, expression: ast.Call, function: FunctionType, bindings: dict[Type, Type]
) -> bool:
    """Whether every inferred type argument is one that a value can have."""
    for parameter, argument in zip(function.parameters, expression.ordered, strict=True):
        if argument is None or parameter.type not in function.variables:
            continue
        bound = bindings.get(parameter.type)
        what = f"argument '{parameter.name}' of '{function.name}'"
        body = getattr(function.declaration, "body", None)
        if bound is INTEGER and (parameter.direction or body is not None):
            context.error(f"{what}: the width of this number is not known; write a sized literal", argument)
            return False
        if bound is STRING and parameter.direction:
            context.error(f"{what}: a string cannot be passed here", argument)
            return False
        if body is not None and bound is not None and not is_storable(bound) and parameter.direction:
            context.error(f"{what}: a value of type '{bound}' cannot be passed here", argument)
            return False
        if isinstance(bound, AnonymousStructType):
            context.error(f"{what}: the struct's type is not known; write (type) before the braces", argument)
            return False
    return True


def _unify_argument(wanted: Type, found: Type, variables: set[Type], bindings: dict[Type, Type]) -> bool:
    if isinstance(wanted, ControlType | ParserType) and isinstance(found, type(wanted)):
        return unify_blocks(wanted, found, variables, bindings)
    return unify(wanted, found, variables, bindings)


def _order(context: CheckContext, expression: ast.Call, function: FunctionType) -> bool:
    """Fill `expression.ordered`: one expression or None per parameter."""
    ordered: list[ast.Expression | None] = [None] * len(function.parameters)
    filled = [False] * len(function.parameters)
    names = [parameter.name for parameter in function.parameters]
    declared = function.declaration.span if function.declaration is not None else None
    for position, argument in enumerate(expression.arguments):
        if argument.name is not None:
            if argument.name not in names:
                context.error(f"'{function.name}' has no parameter '{argument.name}'", argument).note(
                    "declared here", declared
                )
                return False
            index = names.index(argument.name)
        else:
            index = position
            if index >= len(ordered):
                taken = counted(len(ordered), "argument")
                context.error(
                    f"'{function.name}' takes {taken}, {len(expression.arguments)} given",
                    expression,
                ).note(f"declared here: {function}", declared)
                return False
        if filled[index]:
            context.error(f"argument '{names[index]}' is given twice", argument)
            return False
        if argument.expression is None and function.parameters[index].direction != "out":
            context.error(
                f"'_' is for 'out' parameters; '{names[index]}' of '{function.name}' needs a value",
                argument,
            )
            return False
        filled[index] = True
        ordered[index] = argument.expression
    for parameter, present in zip(function.parameters, filled, strict=True):
        if not present and not parameter.optional:
            context.error(
                f"'{function.name}' takes {counted(len(ordered), 'argument')}, {len(expression.arguments)} given: "
                f"no argument for '{parameter.name}'",
                expression,
            ).note(f"declared here: {function}", declared)
            return False
    for index, parameter in enumerate(function.parameters):
        if not filled[index] and parameter.declaration.default is not None:
            ordered[index] = parameter.declaration.default
    expression.ordered = list(ordered)
    return True


def _check_argument(
    context: CheckContext,
    function: FunctionType,
    parameter: ParameterType,
    argument: ast.Expression,
    bindings: dict[Type, Type],
) -> bool:
    wanted = substitute(parameter.type, bindings)
    what = f"argument '{parameter.name}' of '{function.name}'"
    if parameter.direction in ("out", "inout"):
        actual = argument.type or UNKNOWN
        if actual != wanted and UNKNOWN not in (actual, wanted):
            context.error(f"{what}: expected '{wanted}', found '{actual}'", argument)
            return False
        return check_writable(context, argument, what)
    if isinstance(wanted, TypeVariable | ControlType | ParserType):
        return True
    return coerce(context, argument, wanted, what)


def _inferred_later(function: FunctionType) -> bool:
    """Blocks find their type arguments when they are applied, packages need not have all."""
    blocks = (ast.PackageDeclaration, ast.ControlDeclaration, ast.ParserDeclaration)
    return isinstance(function.declaration, blocks)
