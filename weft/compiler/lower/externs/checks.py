"""`verify`, assertions and log messages; checksums outside their controls."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, Reference, UnionValid, Valid, Vector, Verify
from weft.compiler.lower import build
from weft.compiler.lower.calculations import leaves
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate, evaluate_scalar
from weft.compiler.lower.externs.operands import Arguments, emit_primitive, present
from weft.compiler.lower.values import TextValue
from weft.compiler.types import BOOL, bits


def verify(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """verify(condition, error), in parsers."""
    if context.place != "parser":
        context.refuse("'verify' is possible in parsers only", call)
    condition = evaluate_scalar(context, present(context, arguments[0], call))
    error = evaluate_scalar(context, present(context, arguments[1], call))
    if isinstance(condition, Const) and condition.value:
        return
    context.emit(Verify(condition, error, call.span))


def check_assertion(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """assert and assume."""
    emit_primitive(context, call, call.target.name, evaluate_scalar(context, present(context, arguments[0], call)))


def log_message(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """log_msg, with the scalars of its data."""
    message = evaluate(context, present(context, arguments[0], call))
    assert isinstance(message, TextValue)
    items: list[Expr] = []
    if len(arguments) > 1 and arguments[1] is not None:
        items = [
            build.convert(leaf, bits(1)) if isinstance(leaf, Valid | UnionValid) else leaf
            for leaf in leaves(context, evaluate(context, arguments[1]), arguments[1])
        ]
    emit_primitive(context, call, "log_msg", Reference("string", message.text), Vector(tuple(items)))


def static_assert(context: Context, call: ast.Call, arguments: Arguments) -> Expr:
    """Its result: the checker has decided it."""
    del arguments
    return build.constant(bool(call.value), BOOL)


def refuse_checksum(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """A checksum's call in a control that has none."""
    del arguments
    where = "VerifyChecksum" if call.target.name.startswith("verify") else "ComputeChecksum"
    context.refuse(f"'{call.target.name}' is possible in {where} controls only", call)
