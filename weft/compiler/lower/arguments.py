"""Arguments of calls: by reference where nothing can tell the difference, else copied in and out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, FieldRef, ParamRef
from weft.compiler.lower import build
from weft.compiler.lower.assign import assign, invalidate, read_cursor
from weft.compiler.lower.context import Context, Copies
from weft.compiler.lower.conversions import retyped
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.frame import Frame
from weft.compiler.lower.overlap import overlap, places
from weft.compiler.lower.storage import member_types, scalar_type
from weft.compiler.lower.targets import evaluate_frozen_target, read_target
from weft.compiler.lower.values import (
    HeaderElement,
    HeaderLiteral,
    HeaderValue,
    P4Value,
    PacketValue,
    StackCursor,
    StackValue,
    StructValue,
    UnionValue,
)
from weft.compiler.source import Span
from weft.compiler.types import Type


@contextmanager
def copying(context: Context, pairs: Copies) -> Iterator[None]:
    """Inside, an exit makes these copies first."""
    context.calls.pending_copies.append(pairs)
    try:
        yield
    finally:
        context.calls.pending_copies.pop()


def bind_arguments(
    context: Context,
    parameters: Sequence[ast.Parameter],
    arguments: Sequence[P4Value | ast.Expression | None],
    frame: Frame,
    may_write: Callable[[P4Value], bool] | None,
    call: ast.Call,
) -> Copies:
    """Give parameters their values; returns what is to be copied back afterwards.

    Arguments pass by reference where nothing can tell the difference from copying in and out
    (specification, section 6.8): when no argument written shares storage with another. `may_write` says
    whether the callee can write storage other than by its arguments.
    """
    values: list[P4Value | None] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        values.append(_argument(context, parameter, argument, values))
    touched = [places(value) for value in values]
    copy_out: Copies = []
    for index, (parameter, value) in enumerate(zip(parameters, values, strict=True)):
        type_ = frame.type(parameter.type)
        written = parameter.direction in ("out", "inout")
        if written:
            others = touched[:index] + touched[index + 1 :]
            shared = any(overlap(touched[index], other) for other in others)
            copy = shared or may_write is not None
            bound: P4Value | None = _bind_written(context, parameter, value, type_, copy, call, copy_out)
        elif value is None:
            bound = None
        else:
            # What is written to storage that this argument shares is written to a copy, until the callee ends.
            bound = _bind_read(context, value, type_, may_write is not None and may_write(value), call)
        frame.bind(parameter, bound)
    return copy_out


def _argument(
    context: Context,
    parameter: ast.Parameter,
    argument: P4Value | ast.Expression | None,
    earlier: list[P4Value | None],
) -> P4Value | None:
    if argument is None:
        return None
    if not isinstance(argument, ast.Expression):
        return argument
    with context.collecting() as before:
        written = parameter.direction in ("out", "inout")
        value = evaluate_frozen_target(context, argument) if written else evaluate(context, argument)
    if before:
        for index, other in enumerate(earlier):
            if isinstance(other, Expr):
                earlier[index] = context.snapshot(other) if not isinstance(other, FieldRef) else other
        context.out += before
    return value


def _bind_read(context: Context, value: P4Value, type_: Type, copy: bool, call: ast.Call) -> P4Value:
    if isinstance(value, Expr):
        scalar = scalar_type(type_)
        if scalar is not None:
            value = build.convert(value, scalar)
        if isinstance(value, Const | ParamRef) or (isinstance(value, FieldRef) and not copy):
            return value
        return context.snapshot(value)
    if isinstance(value, StructValue):
        value = retyped(value, type_)
    if isinstance(value, StackCursor):
        value = read_cursor(context, value, call)
    if isinstance(value, StructValue) and value.type is not None:
        inner = dict(member_types(type_)) if value.type == type_ else {}
        parts = {
            name: _bind_read(context, part, inner.get(name, getattr(part, "type", type_)), copy, call)
            for name, part in value.fields.items()
        }
        return StructValue(value.type, parts)
    if (isinstance(value, HeaderValue | StackValue | UnionValue) and copy) or isinstance(
        value, HeaderElement | HeaderLiteral
    ):
        result = context.temporary(type_)
        assign(context, result, value, None)
        return result
    return value


def _bind_written(
    context: Context,
    parameter: ast.Parameter,
    value: P4Value | None,
    type_: Type,
    copy: bool,
    call: ast.Call,
    copy_out: Copies,
) -> P4Value:
    direct = FieldRef | StructValue | HeaderValue | StackValue | UnionValue | PacketValue
    of_another_type = isinstance(value, FieldRef) and scalar_type(type_) != value.type
    if isinstance(value, direct) and not of_another_type and not copy:
        if parameter.direction == "out":
            invalidate(context, value, call.span)
        return value
    local = context.temporary(type_, parameter.name)
    if parameter.direction == "inout" and value is not None:
        assign(context, local, read_target(value), call.span)
    elif parameter.direction == "out":
        invalidate(context, local, call.span)
    if value is not None:
        copy_out.append((value, local))
    return local


def copy_back(context: Context, pairs: Copies, span: Span | None) -> None:
    """Write the copies of `out` and `inout` arguments back."""
    for target, local in pairs:
        assign(context, target, local, span)


def writes_anything(_: P4Value) -> bool:
    """An action may write any variable of its control."""
    return True
