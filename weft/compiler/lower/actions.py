"""Actions of tables: bodies lowered once for each instance, default actions and actions of entries."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.check.table_actions import action_name
from weft.compiler.ir import Action, ActionParameter, Const, ParamRef, Table, bit_width
from weft.compiler.lower import build
from weft.compiler.lower.arguments import bind_arguments, copy_back, copying, writes_anything
from weft.compiler.lower.context import Context, Copies
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.inlining import inline_body
from weft.compiler.lower.storage import is_empty, matchable, scalar_type
from weft.compiler.lower.values import ActionValue, TableValue
from weft.compiler.types import BOOL, BitsType, bits


def lower_table_actions(context: Context, table: Table, declaration: ast.TableDeclaration, frame: Frame) -> None:
    """Lower the actions that a table lists, and find its default action."""
    listed: list[tuple[Action, ast.ActionReference | None]] = []
    for reference in declaration.actions:
        action = _action_of(context, reference, frame)
        listed.append((action, reference))
        table.actions.append(action)
    default = declaration.properties.get("default_action")
    if default is None:
        no_action = next((action for action in table.actions if action.name == "NoAction"), None)
        if no_action is None:
            no_action = _no_action(context, frame)
            if no_action is not None:
                table.actions.append(no_action)
                listed.append((no_action, None))
        table.default_action = no_action
    else:
        table.default_is_const = default.is_const
        table.default_action, table.default_arguments = chosen_action(context, declaration, listed, default.expression)
    context.control_plane.table_actions[table.name] = listed


def _no_action(context: Context, frame: Frame) -> Action | None:
    declaration = context.tables.no_action
    if declaration is None:
        return None
    return _lower_action(context, ActionValue(declaration, context.globals), None)


def _action_of(context: Context, reference: ast.ActionReference, frame: Frame) -> Action:
    declaration = reference.declaration
    call = reference.call
    value = frame.find(declaration)
    if not isinstance(value, ActionValue):
        value = ActionValue(declaration, context.globals)
    return _lower_action(context, value, call if isinstance(call, ast.Call) and call.arguments else None)


def _lower_action(context: Context, value: ActionValue, bound: ast.Call | None) -> Action:
    declaration = value.declaration
    identity = (id(declaration), id(value.frame), id(bound) if bound is not None else 0)
    known = context.tables.actions.get(identity)
    if known is not None:
        return known
    outer = value.frame
    action = Action(outer.name_of(declaration), [], [], declaration.span)
    context.tables.actions[identity] = action
    frame = Frame(outer, outer.path)
    with context.collecting() as before:
        copy_out = _bind_parameters(context, action, declaration, bound, frame)
    saved = context.calls.in_action
    context.calls.in_action = True
    try:
        with context.collecting() as body:
            context.out += before
            with copying(context, copy_out):
                inline_body(context, frame, declaration.body.statements, declaration.span)
            copy_back(context, copy_out, declaration.span)
    finally:
        context.calls.in_action = saved
    action.body = body
    context.program.actions.append(action)
    context.control_plane.action_sources[id(action)] = (declaration, outer)
    return action


def _bind_parameters(
    context: Context, action: Action, declaration: ast.ActionDeclaration, bound: ast.Call | None, frame: Frame
) -> Copies:
    copy_out: Copies = []
    directed = [parameter for parameter in declaration.parameters if parameter.direction]
    arguments = [argument.expression for argument in bound.arguments] if bound is not None else []
    if directed and bound is not None:
        copy_out = bind_arguments(context, directed, arguments, frame, writes_anything, bound)
    for parameter in declaration.parameters:
        if parameter.direction:
            continue
        type_ = frame.type(parameter.type)
        scalar = scalar_type(type_)
        if scalar is None:
            context.refuse(f"the data of an action cannot be of type '{type_}' on BMv2", parameter)
        index = len(action.parameters)
        width = bit_width(matchable(scalar))
        action.parameters.append(ActionParameter(parameter.external_name(), type_, width))
        if is_empty(scalar):
            frame.bind(parameter, build.constant(0, scalar))
        elif scalar is BOOL:
            frame.bind(parameter, build.convert(ParamRef(index, bits(1)), BOOL))
        else:
            frame.bind(parameter, ParamRef(index, scalar))
    return copy_out


def chosen_action(
    context: Context,
    declaration: ast.TableDeclaration,
    listed: list[tuple[Action, ast.ActionReference | None]],
    expression: ast.Expression,
) -> tuple[Action | None, list[Const]]:
    """The action and action data of a default action or an entry."""
    name = action_name(expression)
    for action, reference in listed:
        if reference is not None and action_name(reference.call) == name:
            source = reference.declaration
            given = list(expression.arguments) if isinstance(expression, ast.Call) else []
            data = [parameter for parameter in source.parameters if not parameter.direction]
            if len(given) > len(data):
                given = given[len(given) - len(data) :]
            return action, [
                _action_data(context, argument.expression, parameter)
                for argument, parameter in zip(given, data, strict=True)
            ]
    raise AssertionError(f"'{name}' is not an action of table '{declaration.name}'")


def _action_data(context: Context, expression: ast.Expression | None, parameter: ast.Parameter) -> Const:
    assert expression is not None
    value = evaluate(context, expression)
    assert isinstance(value, Const)
    scalar = scalar_type(context.frame.type(parameter.type))
    if isinstance(scalar, BitsType):
        return build.constant(int(value.value), scalar)
    return value


def action_label(context: Context, table: TableValue, name: str) -> str:
    """The lowered action's name for a label of a switch."""
    for reference in table.declaration.actions:
        if action_name(reference.call) == name:
            return _action_of(context, reference, table.frame).name
    return name
