"""Registers, counters and meters."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import FieldRef, Reference
from weft.compiler.lower.context import Context
from weft.compiler.lower.externs.operands import (
    Arguments,
    emit_primitive,
    input_operand,
    result_of,
    typed_input,
)
from weft.compiler.lower.storage import scalar_type
from weft.compiler.lower.targets import evaluate_target
from weft.compiler.lower.values import ExternValue
from weft.compiler.types import Type, bits


def read_register(context: Context, call: ast.Call, register: ExternValue, arguments: Arguments) -> None:
    """register.read(result, index)."""
    index = input_operand(context, arguments[1])
    output = result_of(context, call, arguments[0], _element(register))
    emit_primitive(context, call, "register_read", output.field, Reference("register_array", register.name), index)
    output.store()


def write_register(context: Context, call: ast.Call, register: ExternValue, arguments: Arguments) -> None:
    """register.write(index, value)."""
    index = input_operand(context, arguments[0])
    scalar = scalar_type(_element(register))
    value = typed_input(context, arguments[1], scalar or bits(1))
    emit_primitive(context, call, "register_write", Reference("register_array", register.name), index, value)


def _element(register: ExternValue) -> Type:
    assert register.element is not None
    return register.element


def count_packets(context: Context, call: ast.Call, counter: ExternValue, arguments: Arguments) -> None:
    """counter.count(index)."""
    emit_primitive(
        context, call, "count", Reference("counter_array", counter.name), input_operand(context, arguments[0])
    )


def count_directly(context: Context, call: ast.Call, counter: ExternValue, arguments: Arguments) -> None:
    """Nothing: BMv2 counts on every hit of a table with counters."""
    del call, counter, arguments


def execute_meter(context: Context, call: ast.Call, meter: ExternValue, arguments: Arguments) -> None:
    """meter.execute_meter(index, result)."""
    index = input_operand(context, arguments[0])
    type_ = context.type_of(arguments[1]) if arguments[1] is not None else bits(32)
    output = result_of(context, call, arguments[1], type_)
    emit_primitive(context, call, "execute_meter", Reference("meter_array", meter.name), index, output.field)
    output.store()


def read_direct_meter(context: Context, call: ast.Call, meter: ExternValue, arguments: Arguments) -> None:
    """BMv2 writes a direct meter's colour when the table hits, before the action runs."""
    argument = arguments[0]
    target = evaluate_target(context, argument) if argument is not None else None
    if not isinstance(target, FieldRef):
        context.refuse("BMv2 writes a direct meter's result into a field only", argument or call)
    if meter.result is None:
        meter.result = target
    if meter.result != target:
        context.refuse(f"direct meter '{meter.name}' is read into two different fields", call)
