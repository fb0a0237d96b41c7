"""Calls: functions and actions are inlined, tables and blocks applied, methods and externs given to their modules."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.lower.arguments import bind_arguments, copy_back, copying, writes_anything
from weft.compiler.lower.context import Context
from weft.compiler.lower.controls import apply_control
from weft.compiler.lower.conversions import as_type
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.externs.call import call_extern
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.headers import call_header_method
from weft.compiler.lower.inlining import deeper, inline_body
from weft.compiler.lower.packets import call_packet_method
from weft.compiler.lower.parsers import apply_parser
from weft.compiler.lower.tables import apply_table
from weft.compiler.lower.values import ActionValue, BlockValue, P4Value, PacketValue
from weft.compiler.types import VOID, Type


def evaluate_call(context: Context, expression: ast.Call) -> P4Value | None:
    """Emit a call and return its result."""
    kind = expression.kind
    if kind == "builtin":
        return call_header_method(context, expression)
    if kind == "function" and expression.target.body is not None:
        return _call_function(context, expression)
    if kind in ("function", "method"):
        callee = expression.callee
        if kind == "method" and isinstance(callee, ast.Member):
            receiver = evaluate(context, callee.base)
            if isinstance(receiver, PacketValue):
                return call_packet_method(context, expression, receiver)
        return call_extern(context, expression, expression.ordered)
    if kind == "action":
        _call_action(context, expression)
        return None
    if kind == "table":
        apply_table(context, expression)
        return None
    if kind in ("apply", "type_apply"):
        _apply(context, expression)
        return None
    raise AssertionError(f"a call of kind '{kind}' has no value")


def _call_function(context: Context, expression: ast.Call) -> P4Value | None:
    function: ast.FunctionDeclaration = expression.target
    assert function.body is not None
    frame = Frame(context.globals, "", _bindings(context, expression))
    result_type = frame.type(function.signature.result)
    body = function.body
    simple = _single_return(body)
    copy_out = bind_arguments(context, function.parameters, expression.ordered, frame, None, expression)
    if simple is not None and not copy_out:
        with deeper(context, expression), context.in_frame(frame):
            value = evaluate(context, simple)
            return as_type(context, value, result_type)
    if result_type is not VOID:
        frame.return_value = context.temporary(result_type, function.name)
    with deeper(context, expression), copying(context, copy_out):
        inline_body(context, frame, body.statements, expression.span)
    copy_back(context, copy_out, expression.span)
    result: P4Value | None = frame.return_value
    return result


def _bindings(context: Context, expression: ast.Call) -> dict[Type, Type]:
    return {variable: context.frame.type(type_) for variable, type_ in expression.bindings.items()}


def _single_return(body: ast.Block) -> ast.Expression | None:
    if len(body.statements) == 1:
        only = body.statements[0]
        if isinstance(only, ast.Return):
            return only.expression
    return None


def _call_action(context: Context, expression: ast.Call) -> None:
    callee = expression.callee
    value = evaluate(context, callee)
    assert isinstance(value, ActionValue)
    declaration = value.declaration
    if not context.calls.in_action and not context.calls.action_depth:
        context.control_plane.called_actions.append(value)
    frame = Frame(value.frame, value.frame.path)
    copy_out = bind_arguments(context, declaration.parameters, expression.ordered, frame, writes_anything, expression)
    context.calls.action_depth += 1
    try:
        with deeper(context, expression), copying(context, copy_out):
            inline_body(context, frame, declaration.body.statements, expression.span)
    finally:
        context.calls.action_depth -= 1
    copy_back(context, copy_out, expression.span)


def _apply(context: Context, expression: ast.Call) -> None:
    callee = expression.callee
    assert isinstance(callee, ast.Member)
    if expression.kind == "type_apply":
        declaration = expression.target
        name = context.frame.qualify(declaration.external_name())
        block = BlockValue(declaration, name, {}, dict(expression.bindings))
    else:
        instance = evaluate(context, callee.base)
        assert isinstance(instance, BlockValue)
        block = instance
    apply = apply_parser if isinstance(block.declaration, ast.ParserDeclaration) else apply_control
    apply(context, block, expression.ordered, expression)
