"""Header types, instances, stacks and unions."""

from __future__ import annotations

from typing import Any

from weft.compiler.emit_json.expressions import raw
from weft.compiler.ir import Expr, HeaderType, LoweredProgram, StackInstance, bit_width
from weft.compiler.lower.storage import SCALARS
from weft.compiler.types import BitsType, Type, VarbitType

Json = dict[str, Any]


def field_json(value: Expr) -> Json:
    """A field by reference, without conversion."""
    return raw(value)


def header_sections(program: LoweredProgram) -> Json:
    """The sections of the document about headers, each object with its number."""
    types = {SCALARS: HeaderType(SCALARS, program.scalars), **program.header_types}
    metadata_types = {SCALARS, "standard_metadata"} | {entry.type_name for entry in program.headers if entry.metadata}
    instances = [(SCALARS, SCALARS, True), ("standard_metadata", "standard_metadata", True)]
    instances += [(entry.name, entry.type_name, entry.metadata) for entry in program.headers]
    header_ids = {name: index for index, (name, _, _) in enumerate(instances)}
    union_ids = {entry.name: index for index, entry in enumerate(program.unions)}
    return {
        "header_types": [
            _header_type(entry, index, entry.name in metadata_types) for index, entry in enumerate(types.values())
        ],
        "headers": [
            {"name": name, "id": index, "header_type": type_name, "metadata": metadata, "pi_omit": True}
            for index, (name, type_name, metadata) in enumerate(instances)
        ],
        "header_stacks": [_stack(entry, index, header_ids) for index, entry in enumerate(program.stacks)],
        "header_union_types": [
            {"name": name, "id": index, "headers": [list(member) for member in members]}
            for index, (name, members) in enumerate(program.union_types.items())
        ],
        "header_unions": [
            {
                "name": entry.name,
                "id": index,
                "union_type": entry.type_name,
                "header_ids": [header_ids[member] for member in entry.members],
                "pi_omit": True,
            }
            for index, entry in enumerate(program.unions)
        ],
        "header_union_stacks": [
            {
                "name": entry.name,
                "id": index,
                "union_type": entry.type_name,
                "size": len(entry.elements),
                "header_union_ids": [union_ids[element] for element in entry.elements],
            }
            for index, entry in enumerate(program.union_stacks)
        ],
    }


def _stack(entry: StackInstance, index: int, header_ids: dict[str, int]) -> Json:
    return {
        "name": entry.name,
        "id": index,
        "header_type": entry.type_name,
        "size": len(entry.elements),
        "header_ids": [header_ids[element] for element in entry.elements],
    }


def _header_type(entry: HeaderType, index: int, metadata: bool) -> Json:
    fields: list[list[Any]] = [_field(name, type_) for name, type_ in entry.fields]
    total = sum(bit_width(type_) for _, type_ in entry.fields)
    if metadata and total % 8 and not any(isinstance(type_, VarbitType) for _, type_ in entry.fields):
        fields.append(["_padding", 8 - total % 8, False])
    result: Json = {"name": entry.name, "id": index, "fields": fields}
    if entry.max_length_bytes is not None:
        result["max_length"] = entry.max_length_bytes
    return result


def _field(name: str, type_: Type) -> list[Any]:
    if isinstance(type_, VarbitType):
        return [name, "*"]
    return [name, bit_width(type_), isinstance(type_, BitsType) and type_.signed]
