"""Typing of calls of functions, methods and actions, and of `apply` (specification, section 8.20)."""

from __future__ import annotations

from weft.compiler import ast, types
from weft.compiler.check.allowed_types import looked_ahead
from weft.compiler.check.arguments import apply_signature
from weft.compiler.check.builtins import infer_builtin
from weft.compiler.check.constructors import infer_constructor
from weft.compiler.check.context import CheckContext
from weft.compiler.check.infer import infer
from weft.compiler.check.overloads import choose
from weft.compiler.check.signatures import parameter_types
from weft.compiler.check.type_nodes import resolve
from weft.compiler.wording import article


def infer_call(context: CheckContext, expression: ast.Call, expected: types.Type | None) -> types.Type:
    """A call of any kind."""
    callee = expression.callee
    if isinstance(callee, ast.TypeExpression):
        return infer_constructor(context, expression, resolve(context, callee.node), expected)
    if isinstance(callee, ast.Member):
        builtin = infer_builtin(context, expression, callee)
        if builtin is not None:
            return builtin
    type_ = infer(context, callee)
    if type_ is types.UNKNOWN:
        for argument in expression.arguments:
            if argument.expression is not None:
                infer(context, argument.expression)
        return types.UNKNOWN
    if isinstance(type_, types.OverloadType):
        return _overloaded(context, expression, type_, expected)
    if isinstance(type_, types.ActionType):
        expression.kind, expression.target = "action", type_.declaration
        if context.enclosing.kind not in ("control", "action"):
            return context.fail(expression, f"an action cannot be called in {article(context.enclosing.kind)}")
        parameters = parameter_types(type_.declaration.parameters)
        signature = types.FunctionType(type_.name, (), parameters, types.VOID, type_.declaration)
        return apply_signature(context, expression, signature, {}, expected)
    if isinstance(callee, ast.Member) and callee.name == "apply":
        if isinstance(type_, types.TableType):
            return _table_apply(context, expression, type_)
        if isinstance(type_, types.ControlType | types.ParserType):
            return _block_apply(context, expression, callee, type_)
    return context.fail(expression, f"'{type_}' cannot be called", callee)


def _table_apply(context: CheckContext, expression: ast.Call, type_: types.TableType) -> types.Type:
    if expression.arguments:
        return context.fail(expression, "table.apply() takes no arguments")
    if context.enclosing.kind != "control":
        return context.fail(
            expression,
            f"a table is applied in a control's apply block, not in {article(context.enclosing.kind)}",
        )
    expression.kind, expression.target = "table", type_.declaration
    return types.ApplyResultType(type_.declaration)


def _block_apply(
    context: CheckContext,
    expression: ast.Call,
    callee: ast.Member,
    type_: types.ControlType | types.ParserType,
) -> types.Type:
    by_type = isinstance(callee.base, ast.TypeExpression)
    kind = "parser" if isinstance(type_, types.ParserType) else "control"
    if context.enclosing.kind != kind:
        return context.fail(expression, f"a {kind} cannot be applied in {article(context.enclosing.kind)}")
    declaration = type_.declaration
    if by_type and declaration.constructor_parameters:
        return context.fail(expression, f"'{declaration.name}' has constructor parameters and needs an instance")
    expression.kind, expression.target = ("type_apply" if by_type else "apply"), declaration
    variables = tuple(
        parameter.type for parameter in declaration.type_parameters if isinstance(parameter.type, types.TypeVariable)
    )
    mapping: dict[types.Type, types.Type] = dict(zip(variables, type_.arguments, strict=False))
    free = () if type_.arguments else variables
    signature = types.FunctionType("apply", free, parameter_types(declaration.parameters), types.VOID, declaration)
    return apply_signature(context, expression, signature, mapping, None)


def _overloaded(
    context: CheckContext, expression: ast.Call, type_: types.OverloadType, expected: types.Type | None
) -> types.Type:
    expression.kind = type_.kind
    chosen = choose(context, expression, type_.functions)
    if chosen is None:
        return types.UNKNOWN
    expression.target = chosen.declaration
    result = apply_signature(context, expression, chosen, dict(type_.mapping), expected)
    if chosen.name == "extract" and type_.kind == "method":
        _check_extract(context, expression)
    if chosen.name == "lookahead" and type_.kind == "method" and not looked_ahead(result):
        return context.fail(expression, f"'lookahead' needs a type of fixed width, not '{result}'")
    if chosen.name == "static_assert" and type_.kind == "function" and result is types.BOOL:
        _static_assert(context, expression)
    return result


def _check_extract(context: CheckContext, expression: ast.Call) -> None:
    """packet_in.extract takes headers, with a length those that have a varbit field."""
    argument = expression.ordered[0] if expression.ordered else None
    type_ = argument.type if argument is not None else None
    if argument is None or type_ is None or type_ is types.UNKNOWN or isinstance(type_, types.TypeVariable):
        return
    if not types.is_header(type_):
        context.error(f"'extract' needs a header, not '{type_}'", argument)
        return
    assert isinstance(type_, types.StructType)
    variable = any(isinstance(field, types.VarbitType) for field in type_.fields.values())
    if variable != (len(expression.ordered) > 1):
        problem = "has a varbit field, so its length must be given" if variable else "has no varbit field"
        context.error(f"'{type_}' {problem}", argument).note("declared here", type_.declaration.span)


def _static_assert(context: CheckContext, expression: ast.Call) -> None:
    condition = expression.ordered[0]
    if condition.value is None:
        context.error("the condition of static_assert must be known at compile time", condition)
    elif not condition.value:
        message = expression.ordered[1].value if len(expression.ordered) > 1 else "it does not hold"
        context.error(f"static_assert: {message}", expression)
    expression.value = condition.value
