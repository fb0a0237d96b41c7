"""Counters, meters, registers and action profiles in P4Info (P4Runtime specification, section 6.4)."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.ir import Const
from weft.compiler.lower.values import ExternValue
from weft.compiler.p4info.context import EXTERN_PREFIXES, InfoContext
from weft.compiler.p4info.ids import Prefix
from weft.compiler.p4info.types import annotations_of, type_name
from weft.compiler.types import ExternType

_COUNTER_UNITS: dict[str, Any] = {"bytes": 1, "packets": 2, "packets_and_bytes": 3}
_METER_UNITS: dict[str, Any] = {"bytes": 1, "packets": 2}
_PROFILE_ANNOTATIONS = ("max_group_size", "selector_size_semantics", "max_member_weight")


def add_extern(context: InfoContext, value: ExternValue) -> None:
    """An extern's instance; a direct one that no table uses is left out."""
    message: Any
    if value.declaration is not None:
        context.info.type_info.SetInParent()
    if value.kind == "counter":
        message = context.info.counters.add()
        _extern_preamble(context, message, value)
        message.spec.unit = _COUNTER_UNITS[value.unit]
        _indexed(context, message, value)
    elif value.kind == "meter":
        message = context.info.meters.add()
        _extern_preamble(context, message, value)
        message.spec.unit = _METER_UNITS[value.unit]
        _indexed(context, message, value)
    elif value.kind == "register":
        message = context.info.registers.add()
        _extern_preamble(context, message, value)
        assert value.element is not None
        context.types.fill(message.type_spec, value.element)
        _indexed(context, message, value)
    elif value.kind in ("direct_counter", "direct_meter"):
        _direct(context, value)
    else:
        _profile(context, value)


def _extern_preamble(context: InfoContext, message: Any, value: ExternValue) -> None:
    context.preamble(message, EXTERN_PREFIXES[value.kind], value.name, annotations_of(value.declaration))


def _indexed(context: InfoContext, message: Any, value: ExternValue) -> None:
    size = value.arguments["size"]
    assert isinstance(size, Const)
    message.size = int(size.value)
    assert isinstance(value.type, ExternType)
    index_position = 1 if value.kind == "register" else 0
    if len(value.type.arguments) > index_position:
        index = value.type.arguments[index_position]
        context.types.note(index)
        name = type_name(index)
        if name is not None:
            message.index_type_name.name = name


def _direct(context: InfoContext, value: ExternValue) -> None:
    table = value.table
    if table is None:
        return
    counter = value.kind == "direct_counter"
    message: Any = context.info.direct_counters.add() if counter else context.info.direct_meters.add()
    _extern_preamble(context, message, value)
    message.spec.unit = (_COUNTER_UNITS if counter else _METER_UNITS)[value.unit]
    message.direct_table_id = context.ids.id(Prefix.TABLE, table.name)


def _profile(context: InfoContext, value: ExternValue) -> None:
    profile, annotations = value.profile, value.annotations
    assert profile is not None
    if annotations is None:
        annotations = annotations_of(value.declaration)
    message = context.info.action_profiles.add()
    plain = [annotation for annotation in annotations if annotation.name not in _PROFILE_ANNOTATIONS]
    context.preamble(message, Prefix.ACTION_PROFILE, value.name, plain)
    message.size = profile.size
    message.with_selector = value.kind == "action_selector"
    if message.with_selector:
        _selector_sizes(context, message, annotations)
    tables = sorted(table.name for table in context.tables if table.profile is profile)
    message.table_ids.extend(context.ids.id(Prefix.TABLE, name) for name in tables)


def _selector_sizes(context: InfoContext, message: Any, annotations: ast.Annotations) -> None:
    """@max_group_size, @selector_size_semantics and @max_member_weight (P4Runtime specification, section 6.4)."""
    given = {annotation.name: annotation for annotation in annotations}
    if "max_group_size" in given:
        message.max_group_size = given["max_group_size"].integers()[0]
    semantics = given.get("selector_size_semantics")
    members = semantics is not None and semantics.strings() == ["sum_of_members"]
    if members:
        message.sum_of_members.SetInParent()
        if "max_member_weight" in given:
            message.sum_of_members.max_member_weight = given["max_member_weight"].integers()[0]
    elif semantics is not None:
        message.sum_of_weights.SetInParent()
