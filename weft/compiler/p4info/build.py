"""The P4Info message of a lowered program (P4Runtime specification, section 6)."""

from __future__ import annotations

from typing import Any

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.ir import LoweredProgram
from weft.compiler.lower.control_plane import ControlPlane
from weft.compiler.p4info.annotations import wanted_id
from weft.compiler.p4info.context import EXTERN_PREFIXES, InfoContext
from weft.compiler.p4info.externs import add_extern
from weft.compiler.p4info.ids import IdConflict, Prefix
from weft.compiler.p4info.package import add_package
from weft.compiler.p4info.packet_headers import add_packet_header
from weft.compiler.p4info.tables import add_action, add_table
from weft.compiler.p4info.types import annotations_of
from weft.compiler.p4info.value_sets import add_value_sets
from weft.compiler.source import Span
from weft.compiler.types import StructType


def build_p4info(program: LoweredProgram, control_plane: ControlPlane, diagnostics: Diagnostics) -> Any:
    """The P4Info message. Raises CompileError."""
    context = InfoContext(program, control_plane, diagnostics)
    _assign_ids(context)
    add_package(context)
    for table in context.tables:
        add_table(context, table)
    for name, (declaration, _) in context.actions.items():
        add_action(context, name, declaration)
    for value in context.control_plane.externs:
        add_extern(context, value)
    add_value_sets(context)
    _add_digests(context)
    for header in context.controller_headers:
        add_packet_header(context, header)
    if context.control_plane.extern_functions:
        # As p4c does: empty type information where something could have had a type.
        context.info.type_info.SetInParent()
    diagnostics.raise_if_errors()
    return context.info


def _assign_ids(context: InfoContext) -> None:
    """Number all objects, those that the program numbers itself first."""
    for table in context.tables:
        declaration, _ = context.control_plane.table_sources[table.name]
        _announce(context, Prefix.TABLE, table.name, declaration.annotations, declaration.span)
    for name, (action, _) in context.actions.items():
        _announce(context, Prefix.ACTION, name, action.annotations, action.span)
    for value in context.control_plane.externs:
        prefix = EXTERN_PREFIXES[value.kind]
        if value.kind.startswith("direct") and value.table is None:
            continue
        _announce(context, prefix, value.name, annotations_of(value.declaration), value.call.span)
    for name, (declaration_, _) in context.control_plane.value_set_sources.items():
        _announce(context, Prefix.VALUE_SET, name, declaration_.annotations, declaration_.span)
    for header in context.controller_headers:
        _announce(context, Prefix.CONTROLLER_HEADER, header.external_name(), header.annotations, header.span)
    for name in context.control_plane.digest_types:
        context.ids.add(Prefix.DIGEST, name)
    context.ids.assign()


def _announce(context: InfoContext, prefix: Prefix, name: str, annotations: ast.Annotations, span: Span | None) -> None:
    try:
        context.ids.add(prefix, name, wanted_id(annotations))
    except IdConflict as conflict:
        context.diagnostics.error(str(conflict), span)
        context.ids.add(prefix, name)


def _add_digests(context: InfoContext) -> None:
    for name, type_ in context.control_plane.digest_types.items():
        message = context.info.digests.add()
        annotations = type_.declaration.annotations if isinstance(type_, StructType) else []
        context.preamble(message, Prefix.DIGEST, name, annotations)
        context.types.fill(message.type_spec, type_)
