"""Calculations of hashes and checksums, and the scalars that they read."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Calculation, Const, Convert, Expr, FieldRef, bit_width
from weft.compiler.lower import build, values
from weft.compiler.lower.assign import assign, read_cursor
from weft.compiler.lower.context import Context
from weft.compiler.lower.members import element_fields
from weft.compiler.types import BOOL, BitsType, bits


def declare_calculation(
    context: Context, algorithm: str, inputs: list[Expr], payload: bool, call: ast.Call | None
) -> str:
    """Declare a calculation and return its name."""
    name = context.storage.unique("calc")
    span = call.span if call is not None else None
    context.program.calculations.append(Calculation(name, algorithm, inputs, payload, span))
    return name


def calculation_inputs(
    context: Context, value: values.P4Value, where: ast.Node, simple_only: bool = False
) -> list[Expr]:
    """The scalars of a list, struct or header; computed ones go through variables unless `simple_only`."""
    inputs: list[Expr] = []
    for part in leaves(context, value, where):
        if isinstance(part, Const):
            inputs.append(part if part.type is not BOOL else build.constant(part.value, bits(1)))
        elif isinstance(part, FieldRef):
            inputs.append(part)
        elif simple_only:
            split = _bit_parts(part)
            if split is not None:
                inputs += split
                continue
            context.refuse("BMv2 takes fields and constants here, no computations", where)
        else:
            copy = context.scalar_temporary(part.type)
            assign(context, copy, part, where.span)
            inputs.append(copy)
    return inputs


def leaves(context: Context, value: values.P4Value, where: ast.Node) -> list[Expr]:
    """All scalars within a value that have bits, in order."""
    return [leaf for leaf in scalars(context, value, where) if bit_width(leaf.type)]


def scalars(context: Context, value: values.P4Value, where: ast.Node) -> list[Expr]:
    """All scalars within a value, in order."""
    if isinstance(value, Expr):
        return [value]
    parts: list[values.P4Value]
    if isinstance(value, values.StructValue | values.HeaderValue | values.HeaderLiteral):
        parts = list((value.fields or {}).values())
    elif isinstance(value, values.StackValue):
        parts = list(value.elements)
    elif isinstance(value, values.UnionValue):
        parts = list(value.members.values())
    elif isinstance(value, values.HeaderElement):
        parts = list(element_fields(value).values())
    elif isinstance(value, values.StackCursor | values.UnionCursor):
        parts = list((read_cursor(context, value, where).fields or {}).values())
    else:
        context.refuse("BMv2 takes bit, int and bool values here, no strings", where)
    return [leaf for part in parts for leaf in scalars(context, part, where)]


def _bit_parts(value: Expr) -> list[Expr] | None:
    """A widening cast of a field as zero bits and the field: what a calculation can read."""
    if isinstance(value, Convert) and isinstance(value.operand, FieldRef):
        source, target = value.operand.type, value.type
        if isinstance(source, BitsType) and isinstance(target, BitsType) and not source.signed:
            extra = target.width - source.width
            if extra > 0:
                return [Const(0, bits(extra)), value.operand]
    return None
