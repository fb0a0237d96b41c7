"""Instances of externs, controls and parsers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from weft.compiler import ast
from weft.compiler.budgets import ARRAY_CELLS, CONTROL_PLANE_SIZE
from weft.compiler.ir import ActionProfile, Const, Counter, Meter, Register, Table, bit_width
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.sizes import control_plane_size
from weft.compiler.lower.storage import is_empty, scalar_type
from weft.compiler.lower.values import BlockValue, ExternValue, P4Value
from weft.compiler.source import Span
from weft.compiler.types import ControlType, EnumType, ExternType, ParserType, Type, bits
from weft.compiler.warnings.kinds import Kind
from weft.compiler.wording import choices

_SIZED = ("register", "counter", "meter", "action_profile", "action_selector")
_DIRECT = ("direct_counter", "direct_meter")
_COUNTING = ("counter", "meter", "direct_counter", "direct_meter")
_SHARED_NAMES = {
    "direct_counter": "counter",
    "direct_meter": "meter",
    "action_selector": "action_profile",
}
"""Kinds that BMv2 keeps in one list with another kind."""


def declare_instance(context: Context, declaration: ast.InstanceDeclaration) -> None:
    """An instance in the current frame, named after its declaration."""
    assert declaration.call is not None
    value = instantiate(context, declaration.call, context.frame.name_of(declaration), declaration)
    context.frame.bind(declaration, value)


def instantiate(context: Context, call: ast.Call, name: str, declaration: ast.InstanceDeclaration | None) -> P4Value:
    """An instance of an extern, control or parser."""
    context.inlined.take(1, call.span)
    type_ = context.frame.type(call.type)
    bindings: dict[Type, Type] = {key: context.frame.type(inner) for key, inner in call.bindings.items()}
    if isinstance(type_, ControlType | ParserType):
        parameters = type_.declaration.constructor_parameters
        arguments = _constructor_arguments(context, parameters, call)
        return BlockValue(type_.declaration, name, arguments, bindings)
    if isinstance(type_, ExternType):
        if type_.name not in _SIZED + _DIRECT:
            context.refuse(f"v1model on BMv2 has no extern '{type_.name}' {choices(_SIZED + _DIRECT)}", call)
        constructor = next(
            method
            for method in type_.declaration.methods
            if method.result is None and len(method.parameters) >= len(call.arguments)
        )
        arguments = _constructor_arguments(context, constructor.parameters, call)
        value = ExternValue(type_.name, name, declaration, arguments, type_, call)
        _declare_extern(context, value)
        return value
    context.refuse(f"'{type_}' cannot be instantiated here", call)


def _constructor_arguments(context: Context, parameters: Sequence[ast.Parameter], call: ast.Call) -> dict[str, P4Value]:
    arguments: dict[str, P4Value] = {}
    for parameter, expression in zip(parameters, call.ordered, strict=True):
        if expression is None:
            continue
        if isinstance(expression, ast.Call) and expression.kind == "constructor":
            arguments[parameter.name] = instantiate(context, expression, context.frame.qualify(parameter.name), None)
        else:
            arguments[parameter.name] = evaluate(context, expression)
    return arguments


def _declare_extern(context: Context, value: ExternValue) -> None:
    """Add the instance to the program's arrays (direct ones when their table is known: see finish)."""
    span = value.declaration.span if value.declaration is not None else value.call.span
    _check_name(context, value, span)
    context.control_plane.externs.append(value)
    size = _array_size(context, value) if value.kind in _SIZED else 0
    if value.kind in _COUNTING:
        value.unit = _member_argument(context, value, "type")
    if value.kind == "register":
        _declare_register(context, value, size)
    elif value.kind == "counter":
        context.program.counters.append(Counter(value.name, size, None, span))
    elif value.kind == "meter":
        context.program.meters.append(Meter(value.name, value.unit, size, None, None, span))
    elif value.kind == "action_profile":
        value.profile = ActionProfile(value.name, size, None, None, span)
    elif value.kind == "action_selector":
        algorithm = _member_argument(context, value, "algorithm")
        value.profile = ActionProfile(value.name, size, algorithm, None, span)
    else:
        assert value.kind in _DIRECT


def _check_name(context: Context, value: ExternValue, span: Span) -> None:
    """The control plane identifies instances of a kind by their names."""
    kind = _SHARED_NAMES.get(value.kind, value.kind)
    known = context.extern_places.setdefault((kind, value.name), span)
    if known is not span:
        context.diagnostics.error(
            f"two {kind}s have the control-plane name '{value.name}'; give one another by @name", span
        ).note("the other one", known)


def _declare_register(context: Context, value: ExternValue, size: int) -> None:
    assert isinstance(value.type, ExternType)
    if not value.type.arguments:
        _refuse_foreign(context, value, "it has a type argument there")
    element = value.type.arguments[0]
    scalar = scalar_type(element)
    span = value.declaration.span if value.declaration is not None else value.call.span
    if scalar is None or is_empty(scalar):
        context.refuse(f"BMv2 has registers of bit, int and bool types only, not of '{element}'", value.call)
    if size == 0:
        context.refuse("a register array has at least one element", value.call)
    value.element = element
    context.program.registers.append(Register(value.name, size, bit_width(scalar), span))


def _array_size(context: Context, value: ExternValue) -> int:
    limit = CONTROL_PLANE_SIZE if value.kind.startswith("action") else ARRAY_CELLS
    size = value.arguments.get("size")
    if size is None:
        _refuse_foreign(context, value, "its constructor has a 'size' there")
    return control_plane_size(context, size, f"the size of '{value.name}'", value.call, limit)


def _member_argument(context: Context, value: ExternValue, name: str) -> str:
    """The enum member given for a constructor parameter."""
    assert isinstance(value.type, ExternType)
    constructors = (method for method in value.type.declaration.methods if method.result is None)
    types = [entry.type for method in constructors for entry in method.parameters if entry.name == name]
    argument = value.arguments.get(name)
    if not types or not isinstance(types[0], EnumType) or not isinstance(argument, Const):
        _refuse_foreign(context, value, f"'{name}' of its constructor is an enum there")
    return types[0].member_of(int(argument.value))


def _refuse_foreign(context: Context, value: ExternValue, how: str) -> NoReturn:
    """Refuse an instance of an extern that a program declares by itself, under a name of v1model.p4's."""
    context.refuse(f"extern '{value.kind}' is not v1model.p4's: {how}", value.call)


def finish_direct_externs(
    context: Context,
) -> None:
    """Counters and meters of tables, once every table is known."""
    for value in context.control_plane.externs:
        table = value.table
        span = value.declaration.span if value.declaration is not None else value.call.span
        if value.kind == "direct_counter" and table is not None:
            context.program.counters.append(Counter(value.name, None, table.name, span))
        elif value.kind == "direct_meter":
            _declare_direct_meter(context, value, table)


def _declare_direct_meter(context: Context, value: ExternValue, table: Table | None) -> None:
    span = value.declaration.span if value.declaration is not None else value.call.span
    result = value.result
    if table is None:
        if result is not None:
            context.diagnostics.error(f"direct meter '{value.name}' is read but no table has it in 'meters'", span)
        return
    if result is None:
        context.diagnostics.warning(f"direct meter '{value.name}' is never read", span, Kind.UNUSED)
        result = context.scalar_temporary(bits(32), f"{value.name}.color")
    context.program.meters.append(Meter(value.name, value.unit, table.size, table.name, result, span))
