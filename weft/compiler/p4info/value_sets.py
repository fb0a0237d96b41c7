"""Parser value sets in P4Info (P4Runtime specification, section 6.4)."""

from __future__ import annotations

from typing import Any

from weft.compiler.p4info.annotations import add_annotations, add_documentation, wanted_id
from weft.compiler.p4info.context import MATCH_TYPES, InfoContext
from weft.compiler.p4info.ids import Prefix, field_ids
from weft.compiler.p4info.types import control_plane_width
from weft.compiler.types import BitsType, EnumType, SetType, StructType, strip_new
from weft.compiler.wording import choices


def add_value_sets(context: InfoContext) -> None:
    """All value sets with what they match."""
    sizes = {entry.name: entry.size for entry in context.program.value_sets}
    for name, (declaration, frame) in context.control_plane.value_set_sources.items():
        message = context.info.value_sets.add()
        context.preamble(message, Prefix.VALUE_SET, name, declaration.annotations)
        message.size = sizes[name]
        assert isinstance(declaration.type, SetType)
        element = frame.type(declaration.type.element)
        if isinstance(element, StructType):
            _struct_matches(context, message, element)
        elif isinstance(element, BitsType):
            match = message.match.add()
            match.id = 1
            match.bitwidth = element.width
            match.match_type = MATCH_TYPES["exact"]
        elif isinstance(element, EnumType) and element.underlying is not None:
            for index, member in enumerate(element.declaration.members):
                match = message.match.add()
                match.id = index + 1
                match.name = member.external_name()
                match.bitwidth = element.underlying.width
                match.match_type = MATCH_TYPES["exact"]


def _struct_matches(context: InfoContext, message: Any, element: StructType) -> None:
    fields = element.declaration.fields
    ids = field_ids([wanted_id(field.annotations) for field in fields])
    for field, number in zip(fields, ids, strict=True):
        match = message.match.add()
        match.id = number
        match.name = field.external_name()
        match.bitwidth = control_plane_width(element.fields[field.name])
        annotation = field.annotation("match")
        kind = "".join(token.text for token in annotation.tokens) if annotation is not None else "exact"
        if kind not in MATCH_TYPES:
            context.diagnostics.error(f"'{kind}' is not a match kind {choices(MATCH_TYPES)}", field.span)
            continue
        if not isinstance(strip_new(element.fields[field.name]), BitsType):
            context.diagnostics.error(
                f"P4Runtime knows bit<…> fields only in a value set's struct, not '{element.fields[field.name]}'",
                field.span,
            )
        match.match_type = MATCH_TYPES[kind]
        add_annotations(match, field.annotations, skip=["match"])
        add_documentation(match, field.annotations)
