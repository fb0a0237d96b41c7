"""The deparser: BMv2 emits headers in an order, without branches."""

from __future__ import annotations

from collections.abc import Sequence

from weft.compiler import ast
from weft.compiler.ir import Const, Primitive, Valid
from weft.compiler.lower.context import Context
from weft.compiler.lower.controls import bound_frame, lower_control_body
from weft.compiler.lower.dispatch import evaluate_scalar, lower_statement
from weft.compiler.lower.statements import lower_if
from weft.compiler.lower.values import BlockValue, P4Value


def lower_deparser(context: Context, block: BlockValue, arguments: Sequence[P4Value]) -> None:
    """The deparser: the order of emitted headers, and what it logs."""
    context.place = "deparser"
    context.statements = {**context.statements, ast.If: _lower_if}
    declaration, frame = bound_frame(context, block, arguments)
    context.program.deparser_span = declaration.span
    with context.collecting() as code:
        lower_control_body(context, declaration, frame)
    for statement in code:
        if not isinstance(statement, Primitive):
            context.refuse(
                "BMv2's deparser only emits headers and logs messages: it computes nothing and has no branches",
                statement.span,
            )
    context.program.deparser_operations = code


def _lower_if(context: Context, statement: ast.If) -> None:
    """A condition known at run time may only repeat what emit checks itself."""
    condition = evaluate_scalar(context, statement.condition)
    if isinstance(condition, Const):
        lower_if(context, statement)
        return
    before = len(context.program.deparser_order)
    with context.collecting() as code:
        if isinstance(statement.then, ast.If):
            lower_if(context, statement.then)
        else:
            lower_statement(context, statement.then)
    emitted = context.program.deparser_order[before:]
    known = isinstance(condition, Valid) and emitted == [condition.header]
    if not known or code or statement.otherwise is not None:
        context.refuse("BMv2's deparser has no branches (but `if (h.isValid()) packet.emit(h);` is emit)", statement)
