"""Calls that decide a packet's fate: drop, truncate, digest, clone, resubmit, recirculate."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.ir import Const, Expr, FieldList, Reference, bit_width
from weft.compiler.lower.assign import assign
from weft.compiler.lower.calculations import leaves, scalars
from weft.compiler.lower.context import Context
from weft.compiler.lower.dispatch import evaluate
from weft.compiler.lower.externs.operands import (
    Arguments,
    emit_primitive,
    enum_member,
    input_operand,
    integer,
    only_in_pipelines,
    present,
)
from weft.compiler.types import StructType, bits
from weft.compiler.warnings.kinds import Kind

_CLONES = {"I2E": ("ingress", "clone_ingress_pkt_to_egress"), "E2E": ("egress", "clone_egress_pkt_to_egress")}


def mark_to_drop(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """mark_to_drop(standard_metadata)."""
    only_in_pipelines(context, call, "mark_to_drop")
    if not arguments:
        context.refuse("mark_to_drop() without its argument is obsolete: pass standard_metadata", call)
    emit_primitive(context, call, "mark_to_drop", Reference("header", "standard_metadata"))


def truncate(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """truncate(length)."""
    only_in_pipelines(context, call, "truncate")
    emit_primitive(context, call, "truncate", input_operand(context, arguments[0]))


def send_digest(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """digest(receiver, data): a learn list of copies of the data."""
    if context.place != "ingress":
        context.refuse("BMv2 has 'digest' in ingress only", call)
    receiver = input_operand(context, arguments[0])
    data = present(context, arguments[1], call)
    value = evaluate(context, data)
    type_ = context.type_of(data)
    if isinstance(type_, StructType):
        name = type_.declaration.external_name()
    else:
        # As p4c numbers digests of lists.
        name = f"digest_{context.list_digests}"
        context.list_digests += 1
    context.control_plane.digest_types.setdefault(name, type_)
    # BMv2 reads the fields at the end of ingress: the values of now go into variables.
    elements: list[Expr] = []
    for leaf in scalars(context, value, data):
        if not bit_width(leaf.type):
            context.refuse("a digest has no fields of 0 bits on BMv2", data)
        copy = context.scalar_temporary(leaf.type, "digest_field")
        assign(context, copy, leaf, call.span)
        elements.append(copy)
    identifier = len(context.program.learn_lists) + 1
    context.program.learn_lists.append(FieldList(identifier, name, elements, data.span))
    emit_primitive(context, call, "generate_digest", receiver, Const(identifier, bits(32)))


def clone(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """clone(type, session)."""
    _clone_with_list(context, call, arguments, _empty_list(context))


def clone_preserving(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """clone_preserving_field_list(type, session, index)."""
    _clone_with_list(context, call, arguments, _field_list(context, arguments[2], call))


def clone_obsolete(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """clone3(type, session, data), where it preserves nothing."""
    _no_data(context, call, arguments[2], "clone_preserving_field_list")
    _clone_with_list(context, call, arguments, _empty_list(context))


def _clone_with_list(context: Context, call: ast.Call, arguments: Arguments, list_id: int) -> None:
    kind = enum_member(context, arguments[0])
    place, primitive = _CLONES[kind]
    if context.place != place:
        context.refuse(f"a clone of type {kind} is possible in {place} only, not in {context.place}", call)
    session = input_operand(context, arguments[1])
    emit_primitive(context, call, primitive, session, Const(list_id, bits(32)))


def resubmit_preserving(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """resubmit_preserving_field_list(index)."""
    _send_back(context, call, "resubmit", "ingress", _field_list(context, arguments[0], call))


def resubmit_obsolete(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """resubmit(data), where it preserves nothing."""
    _no_data(context, call, arguments[0], "resubmit_preserving_field_list")
    _send_back(context, call, "resubmit", "ingress", _empty_list(context))


def recirculate_preserving(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """recirculate_preserving_field_list(index)."""
    _send_back(context, call, "recirculate", "egress", _field_list(context, arguments[0], call))


def recirculate_obsolete(context: Context, call: ast.Call, arguments: Arguments) -> None:
    """recirculate(data), where it preserves nothing."""
    _no_data(context, call, arguments[0], "recirculate_preserving_field_list")
    _send_back(context, call, "recirculate", "egress", _empty_list(context))


def _send_back(context: Context, call: ast.Call, primitive: str, place: str, list_id: int) -> None:
    """Have a packet pass again, with the fields of a list."""
    if context.place != place:
        context.refuse(f"'{primitive}' is possible in {place} only", call)
    emit_primitive(context, call, primitive, Const(list_id, bits(32)))


def _no_data(context: Context, call: ast.Call, data: ast.Expression | None, instead: str) -> None:
    if data is not None and leaves(context, evaluate(context, data), data):
        context.refuse(f"BMv2 preserves metadata by annotation: use {instead} and @field_list", call)


def _field_list(context: Context, argument: ast.Expression | None, call: ast.Call) -> int:
    index = integer(context, argument)
    name = f"field_list{index}"
    for known in context.program.field_lists:
        if known.name == name:
            return known.id
    context.diagnostics.warning(
        f"no metadata field has @field_list({index}): nothing is preserved", call.span, Kind.MISSING
    )
    return _new_list(context, name)


def _empty_list(
    context: Context,
) -> int:
    for known in context.program.field_lists:
        if known.name == "empty":
            return known.id
    return _new_list(context, "empty")


def _new_list(context: Context, name: str) -> int:
    identifier = len(context.program.field_lists) + 1
    context.program.field_lists.append(FieldList(identifier, name, [], None))
    return identifier
