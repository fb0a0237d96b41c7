"""`random` and `hash`."""

from __future__ import annotations

from collections import Counter

from weft.compiler import ast
from weft.compiler.ir import Expr, FieldRef, Reference
from weft.compiler.lower.assign import assign
from weft.compiler.lower.calculations import calculation_inputs, declare_calculation
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.externs.operands import (
    Arguments,
    emit_primitive,
    enum_member,
    input_operand,
    only_in_pipelines,
    present,
    result_of,
)
from weft.compiler.lower.storage import SCALARS
from weft.compiler.lower.targets import save
from weft.compiler.lower.values import HeaderValue, P4Value, StackValue, StructValue, UnionValue
from weft.compiler.types import Type


def draw_random(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """random(result, low, high)."""
    only_in_pipelines(context, call, "random")
    low, high = input_operand(context, arguments[1]), input_operand(context, arguments[2])
    output = result_of(context, call, arguments[0], context.type_of(present(context, arguments[0], call)))
    emit_primitive(context, call, "modify_field_rng_uniform", output.field, low, high)
    output.store()


def hash_fields(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """hash(result, algorithm, base, data, limit)."""
    only_in_pipelines(context, call, "hash")
    algorithm = enum_member(context, arguments[1])
    base = input_operand(context, arguments[2])
    data = present(context, arguments[3], call)
    value = evaluate(context, data)
    with context.collecting() as steps:
        limit = input_operand(context, arguments[4])
    if steps:
        value = save(context, value)
        context.out += steps
    inputs = _hash_inputs(context, value, data, Counter())
    output = result_of(context, call, arguments[0], context.type_of(present(context, arguments[0], call)))
    calculation = declare_calculation(context, algorithm, inputs, False, None)
    emit_primitive(
        context,
        call,
        "modify_field_with_hash_based_offset",
        output.field,
        base,
        Reference("calculation", calculation),
        limit,
    )
    output.store()


def _hash_inputs(context: Context, value: P4Value, where: ast.Expression, used: Counter[Type]) -> list[Expr]:
    """BMv2 leaves an invalid header, and each of its fields, out of a calculation.

    If the program names a header, it stays a header. A field named by itself is a value. It counts even in an
    invalid header (specification, section 8.18: unspecified there), so it is copied, as by p4c. The copies are
    needed until the hash is computed, so all calls share them; `used` counts the copies of this call.
    """
    if isinstance(value, HeaderValue | UnionValue | StackValue):
        return calculation_inputs(context, value, where)
    if isinstance(value, StructValue):
        return [each for part in value.fields.values() for each in _hash_inputs(context, part, where, used)]
    hashed: list[Expr] = []
    for data in calculation_inputs(context, value, where):
        if isinstance(data, FieldRef) and data.header != SCALARS:
            copy = context.storage.reused(data.type, used[data.type])
            used[data.type] += 1
            assign(context, copy, data, where.span)
            data = copy
        hashed.append(data)
    return hashed
