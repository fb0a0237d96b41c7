"""Headers of packet-in and packet-out in P4Info (P4Runtime specification, section 6.4)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.p4info.annotations import add_annotations, add_documentation, wanted_id
from weft.compiler.p4info.context import InfoContext, is_hidden
from weft.compiler.p4info.ids import Prefix, field_ids
from weft.compiler.p4info.types import control_plane_width
from weft.compiler.types import StructType, Type


def add_packet_header(context: InfoContext, declaration: ast.StructDeclaration) -> None:
    """A header with @controller_header; its nested structs are flattened."""
    annotation = declaration.annotation("controller_header")
    assert annotation is not None
    name = annotation.strings()[0] if annotation.strings() else declaration.name
    message = context.info.controller_packet_metadata.add()
    message.preamble.id = context.ids.id(Prefix.CONTROLLER_HEADER, declaration.external_name())
    message.preamble.name = name
    message.preamble.alias = name
    add_annotations(message.preamble, declaration.annotations)
    add_documentation(message.preamble, declaration.annotations)
    fields = _fields(declaration.fields, [], [])
    ids = field_ids([wanted_id(notes) for _, notes, _ in fields])
    for (path, notes, type_), number in zip(fields, ids, strict=True):
        entry = message.metadata.add()
        entry.id = number
        entry.name = path
        add_annotations(entry, notes)
        entry.bitwidth = control_plane_width(type_)
        context.name_type(entry, type_)


def _fields(
    fields: list[ast.Field], path: list[str], outer: ast.Annotations
) -> list[tuple[str, ast.Annotations, Type]]:
    """Name, annotations and type of a controller header's fields, nested structs flattened with dots."""
    flat: list[tuple[str, ast.Annotations, Type]] = []
    for field in fields:
        if is_hidden(field.annotations) or field.type is None:
            continue
        if isinstance(field.type, StructType):
            inner = field.type.declaration.fields
            flat += _fields(inner, [*path, field.name], [*outer, *field.annotations])
        else:
            name = field.external_name() if not path else ".".join([*path, field.name])
            flat.append((name, [*outer, *field.annotations], field.type))
    return flat
