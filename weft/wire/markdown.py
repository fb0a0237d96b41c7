"""Tables of headers for docs/spec, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.wire.fields import Field, Header, Repeated
from weft.wire.headers.roce import Opcode
from weft.wire.headers.uet import PacketType

_MOST_NAMED_VALUES = 16
"""Most values in a field's row; more get a separate table."""


def table_of(header: Header) -> str:
    """Return a header's table: fields in wire order, their widths in bits, and their meaning."""
    rows = [_row_of(each) for each in header.fields]
    return _table(("field", "bits", "meaning"), rows)


def section_of(header: Header) -> str:
    """Return a header's table below its title, source and length."""
    return f"**{header.title} ({header.name})**: {header.source}; {header.size_bytes} bytes.\n\n{table_of(header)}"


def placed_section_of(header: Header) -> str:
    """Return a header's table with a column of where each field begins, below its title, source and length."""
    rows, at = [], 0
    for each in header.fields:
        byte, bit = divmod(at, 8)
        rows.append((f"{byte}.{bit}" if bit else str(byte), *_row_of(each)))
        at += each.bits
    table = _table(("offset", "field", "bits", "meaning"), rows)
    return f"**{header.title} ({header.name})**: {header.source}; {header.size_bytes} bytes.\n\n{table}"


def opcode_table(opcodes: Mapping[str, Opcode]) -> str:
    """Return which extended headers follow each BTH opcode, and whether a payload may."""
    rows = [
        (
            f"0x{opcode.number:02X}",
            name,
            ", ".join(f"[{each.name}]" if each in opcode.optional else each.name for each in opcode.extensions),
            "yes" if opcode.has_payload else "",
        )
        for name, opcode in opcodes.items()
    ]
    return _table(("opcode", "name", "extended headers", "payload"), rows)


def packet_type_table(types: Mapping[str, PacketType]) -> str:
    """Return which headers UET's packet types have, and whether a semantic one may follow."""
    rows = [
        (
            str(each.number),
            name,
            ", ".join(header.name for header in each.headers),
            each.syn_headers[0].name if each.syn_headers else "",
            "yes" if each.has_semantic else "",
        )
        for name, each in types.items()
    ]
    return _table(("type", "name", "headers", "first one with `syn`", "semantic header"), rows)


def value_table(fields: Mapping[str, Field]) -> str:
    """Return the named values of fields that have too many for their header's table."""
    rows = [(name, ", ".join(_named(field, value) for value in field.values)) for name, field in fields.items()]
    return _table(("field", "values"), rows)


def _table(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in (names, *rows)]
    return "\n".join((lines[0], "|---" * len(names) + "|", *lines[1:])) + "\n"


def _row_of(each: Field | Repeated) -> tuple[str, str, str]:
    if isinstance(each, Field):
        return each.name, str(each.bits), _meaning_of(each)
    return (
        f"{each.name}[{each.count or each.counted_by}]",
        f"{each.each.bits} each",
        each.meaning or _parts_of(each),
    )


def _parts_of(each: Repeated) -> str:
    assert isinstance(each.each, Header)
    return ", ".join(f"{part.name} {part.bits}" for part in each.each.fields)


def _meaning_of(field: Field) -> str:
    parts = [field.meaning]
    if field.is_fixed:
        parts = [_written(field, field.default), field.meaning]
    elif len(field.values) <= _MOST_NAMED_VALUES:
        values = ", ".join(_named(field, value) for value in field.values)
        parts = [values, field.meaning] if field.is_closed else [field.meaning, values]
    if field.unit_bytes:
        parts.append(f"in units of {field.unit_bytes} bytes")
    parts.append(field.source)
    return "; ".join(part for part in parts if part)


def _named(field: Field, value: int) -> str:
    name = field.values[value].replace("_", "-")
    note = field.notes.get(value)
    return f"{_written(field, value)}: {name}" + (f" ({note})" if note else "")


def _written(field: Field, value: int) -> str:
    """Return a number as a reader of a dump looks for it."""
    return f"0x{value:X}" if value > 0xFF and field.notation == "decimal" else field.written(value)
