"""Tables and actions in P4Info (P4Runtime specification, section 6.4)."""

from __future__ import annotations

from typing import Any

from finsy.proto import p4i as p4info_pb2

from weft.compiler import ast
from weft.compiler.ir import Action, Table
from weft.compiler.p4info.annotations import add_annotations, add_documentation, wanted_id
from weft.compiler.p4info.context import EXTERN_PREFIXES, MATCH_TYPES, InfoContext, is_hidden
from weft.compiler.p4info.ids import Prefix, field_ids
from weft.compiler.p4info.types import control_plane_width, type_name
from weft.compiler.types import ERROR, EnumType, width_of


def add_table(context: InfoContext, table: Table) -> None:
    """A table with its keys, actions and resources; hidden ones are left out."""
    declaration, frame = context.control_plane.table_sources[table.name]
    if is_hidden(declaration.annotations):
        return
    context.info.type_info.SetInParent()
    message = context.info.tables.add()
    context.preamble(message, Prefix.TABLE, table.name, declaration.annotations)
    message.size = table.size
    _match_fields(context, message, table, declaration, frame)
    for action, reference in context.control_plane.table_actions[table.name]:
        _action_reference(context, message, action, reference)
    _default_action(context, message, table)
    if declaration.entries is not None and declaration.entries_const:
        message.is_const_table = True
    if declaration.entries:
        message.has_initial_entries = True
    if table.profile is not None:
        message.implementation_id = context.ids.id(Prefix.ACTION_PROFILE, table.profile.name)
    for value in context.control_plane.externs:
        if value.table is table:
            message.direct_resource_ids.append(context.ids.id(EXTERN_PREFIXES[value.kind], value.name))
    if table.support_timeout:
        message.idle_timeout_behavior = p4info_pb2.Table.NOTIFY_CONTROL


def add_action(context: InfoContext, name: str, declaration: ast.ActionDeclaration) -> None:
    """An action with the parameters that the control plane gives."""
    _, frame = context.actions[name]
    message = context.info.actions.add()
    context.preamble(message, Prefix.ACTION, name, declaration.annotations)
    # An action that is only called has no data: each call binds its parameters.
    in_table = any(action.name == name for table in context.tables for action in table.actions)
    parameters = [parameter for parameter in declaration.parameters if in_table and not parameter.direction]
    ids = field_ids([wanted_id(parameter.annotations) for parameter in parameters])
    for parameter, number in zip(parameters, ids, strict=True):
        entry = message.params.add()
        entry.id = number
        entry.name = parameter.external_name()
        add_annotations(entry, parameter.annotations)
        add_documentation(entry, parameter.annotations)
        type_ = frame.type(parameter.type)
        if isinstance(type_, EnumType) and type_.underlying is None:
            entry.type_name.name = type_.name
            context.types.note(type_)
            continue
        entry.bitwidth = control_plane_width(type_)
        context.name_type(entry, type_)


def _match_fields(
    context: InfoContext, message: Any, table: Table, declaration: ast.TableDeclaration, frame: Any
) -> None:
    ids = field_ids([wanted_id(key.annotations) for key in declaration.keys])
    for key, field, number in zip(declaration.keys, table.keys, ids, strict=True):
        if field.match_kind == "selector":
            continue
        match = message.match_fields.add()
        match.id = number
        match.name = field.name
        add_annotations(match, key.annotations)
        add_documentation(match, key.annotations)
        type_ = frame.type(key.expression.type)
        unsized = type_name(type_) is not None or type_ is ERROR or width_of(type_) == 0
        match.bitwidth = control_plane_width(type_) or (0 if unsized else field.width)
        match.match_type = MATCH_TYPES[field.match_kind]
        context.name_type(match, type_)


def _action_reference(
    context: InfoContext, message: Any, action: Action, reference: ast.ActionReference | None
) -> None:
    if action.name not in context.actions:
        return
    entry = message.action_refs.add()
    entry.id = context.ids.id(Prefix.ACTION, action.name)
    if reference is None:
        entry.annotations.append("@defaultonly")
        entry.scope = p4info_pb2.ActionRef.DEFAULT_ONLY
        return
    add_annotations(entry, reference.annotations)
    names = {annotation.name for annotation in reference.annotations}
    if "tableonly" in names and "defaultonly" in names:
        context.diagnostics.error("an action cannot be both @tableonly and @defaultonly", reference.span)
    if "tableonly" in names:
        entry.scope = p4info_pb2.ActionRef.TABLE_ONLY
    elif "defaultonly" in names:
        entry.scope = p4info_pb2.ActionRef.DEFAULT_ONLY


def _default_action(context: InfoContext, message: Any, table: Table) -> None:
    action = table.default_action
    if action is None or action.name not in context.actions:
        return
    number = context.ids.id(Prefix.ACTION, action.name)
    if table.default_is_const:
        message.const_default_action_id = number
    message.initial_default_action.action_id = number
    declaration, _ = context.actions[action.name]
    ids = field_ids(
        [wanted_id(parameter.annotations) for parameter in declaration.parameters if not parameter.direction]
    )
    for identifier, parameter, value in zip(ids, action.parameters, table.default_arguments, strict=False):
        argument = message.initial_default_action.arguments.add()
        argument.param_id = identifier
        bytes_ = (parameter.width + 7) // 8
        argument.value = (int(value.value) & ((1 << parameter.width) - 1)).to_bytes(bytes_, "big")
