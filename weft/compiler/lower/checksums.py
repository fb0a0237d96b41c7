"""Controls of checksums: each call becomes a checksum of BMv2."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.ir import Checksum, Expr, FieldRef
from weft.compiler.lower import build
from weft.compiler.lower.arguments import bind_arguments
from weft.compiler.lower.calculations import calculation_inputs, declare_calculation
from weft.compiler.lower.context import Context
from weft.compiler.lower.controls import block_bindings, bound_frame, instance_frame
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.externs.operands import enum_member
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.sizes import shallow
from weft.compiler.lower.values import BlockValue, P4Value

_CHECKSUMS = {
    "verify": ("verify_checksum", "verify_checksum_with_payload"),
    "update": ("update_checksum", "update_checksum_with_payload"),
}


def lower_checksums(context: Context, role: str, block: BlockValue, arguments: Sequence[P4Value]) -> None:
    """The control that verifies checksums, or the one that updates them (`role`)."""
    context.place = role
    declaration, frame = bound_frame(context, block, arguments)
    with context.in_frame(frame), context.collecting() as code:
        for local in declaration.locals:
            if isinstance(local, ast.VariableDeclaration):
                context.refuse(f"variables are not possible in this control on BMv2 ('{local.name}')", local)
        assert declaration.body is not None
        _checksum_block(context, role, declaration.body.statements, build.TRUE)
    if code:
        where = getattr(code[0], "span", None) or declaration.span
        context.refuse("BMv2 computes nothing here but checksums of fields and constants", where)


def _checksum_block(context: Context, role: str, statements: list[ast.Node], condition: Expr) -> None:
    for statement in statements:
        if isinstance(statement, ast.Block):
            _checksum_block(context, role, statement.statements, condition)
        elif isinstance(statement, ast.If):
            value = evaluate_scalar(context, statement.condition)
            when = shallow(context, build.both(condition, value), statement.condition)
            _checksum_block(context, role, [statement.then], when)
            if statement.otherwise is not None:
                when = shallow(context, build.both(condition, build.negate(value)), statement.condition)
                _checksum_block(context, role, [statement.otherwise], when)
        elif isinstance(statement, ast.CallStatement) and isinstance(statement.call, ast.Call):
            _checksum_call(context, role, statement.call, condition)
        elif not isinstance(statement, ast.Empty):
            context.refuse(f"only calls of {' and '.join(_CHECKSUMS[role])} are possible here on BMv2", statement)


def _checksum_call(context: Context, role: str, call: ast.Call, condition: Expr) -> None:
    if call.kind in ("apply", "type_apply"):
        _nested_checksums(context, role, call, condition)
        return
    name = call.target.name if isinstance(call.target, ast.FunctionDeclaration) else ""
    if call.kind != "function" or name not in _CHECKSUMS[role]:
        context.refuse(f"only calls of {' and '.join(_CHECKSUMS[role])} are possible here on BMv2", call)
    context.control_plane.extern_functions.add(name)
    when = build.both(condition, evaluate_scalar(context, call.ordered[0]))
    inputs = calculation_inputs(context, evaluate(context, call.ordered[1]), call.ordered[1], simple_only=True)
    target = evaluate(context, call.ordered[2])
    if not isinstance(target, FieldRef):
        context.refuse("BMv2 takes a field as the checksum", call.ordered[2])
    algorithm = enum_member(context, call.ordered[3])
    calculation = declare_calculation(context, algorithm, inputs, name.endswith("_with_payload"), call)
    checksum = Checksum(context.storage.unique("cksum"), target, calculation, role == "verify", when, call.span)
    context.program.checksums.append(checksum)


def _nested_checksums(context: Context, role: str, call: ast.Call, condition: Expr) -> None:
    callee = call.callee
    assert isinstance(callee, ast.Member)
    if call.kind == "type_apply":
        block = BlockValue(call.target, call.target.name, {}, dict(call.bindings))
    else:
        instance = evaluate(context, callee.base)
        assert isinstance(instance, BlockValue)
        block = instance
    declaration = block.declaration
    assert isinstance(declaration, ast.ControlDeclaration)
    assert declaration.body is not None
    frame = Frame(instance_frame(context, block), block.name, block_bindings(context, block, call))
    bind_arguments(context, declaration.parameters, call.ordered, frame, None, call)
    with context.in_frame(frame):
        _checksum_block(context, role, declaration.body.statements, condition)
