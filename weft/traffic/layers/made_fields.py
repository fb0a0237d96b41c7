"""Scapy's fields of a header, made from its description in `weft/wire/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    FieldListField,
    IntEnumField,
    IntField,
    LongEnumField,
    LongField,
    MACField,
    PacketListField,
    ShortEnumField,
    ShortField,
    SignedIntField,
    SignedShortField,
    XBitField,
    XByteEnumField,
    XByteField,
    XIntField,
    XLongField,
    XShortEnumField,
    XShortField,
)
from scapy.packet import Packet

from weft.wire import Field, Header, Repeated

# By width; others are bit fields.
_FORMATS = {8: "B", 16: "H", 32: "I"}
_PLAIN = {8: ByteField, 16: ShortField, 32: IntField, 64: LongField}
_SIGNED = {16: SignedShortField, 32: SignedIntField}
_HEXADECIMAL = {8: XByteField, 16: XShortField, 32: XIntField, 64: XLongField}
_ENUMERATED = {8: ByteEnumField, 16: ShortEnumField, 32: IntEnumField, 64: LongEnumField}
_ENUMERATED_HEXADECIMAL = {8: XByteEnumField, 16: XShortEnumField}


def fields_of(
    header: Header,
    *,
    layers: Mapping[str, type[Packet]] | None = None,
    lists: Mapping[str, Callable[[str], Any]] | None = None,
    without: int = 0,
) -> list[Any]:
    """Return `fields_desc` of a header's layer.

    Args:
        header: that is described.
        layers: of lists of headers, by the list's name.
        lists: makers of fields for lists of varying length, by the list's name.
        without: how many fields at the beginning belong to another layer.

    """
    counted = {each.counted_by: each.name for each in header.fields if isinstance(each, Repeated) and not each.count}
    made = []
    for each in header.fields[without:]:
        if isinstance(each, Repeated):
            made.append(_list_of(each, layers or {}, lists or {}))
        elif each.name in counted:
            made.append(FieldLenField(each.name, None, count_of=counted[each.name], fmt=_FORMATS[each.bits]))
        else:
            made.append(_field_of(each))
    return made


def _field_of(field: Field) -> Any:
    hexadecimal = field.notation == "hexadecimal"
    if field.notation == "mac":
        return MACField(field.name, field.written(field.default))
    if field.notation == "signed":
        return _SIGNED[field.bits](field.name, field.default)
    if field.values:
        enumerated = _ENUMERATED_HEXADECIMAL if hexadecimal else _ENUMERATED
        names = dict(field.values)
        if field.bits in enumerated:
            return enumerated[field.bits](field.name, field.default, names)
        return BitEnumField(field.name, field.default, field.bits, names)
    whole = _HEXADECIMAL if hexadecimal else _PLAIN
    if field.bits in whole:
        return whole[field.bits](field.name, field.default)
    return (XBitField if hexadecimal else BitField)(field.name, field.default, field.bits)


def _list_of(each: Repeated, layers: Mapping[str, type[Packet]], lists: Mapping[str, Callable[[str], Any]]) -> Any:
    count, counted_by = each.count, each.counted_by
    if not count:
        return lists[each.name](each.name)

    def count_from(packet: Packet) -> int:
        return int(packet.getfieldval(counted_by)) if counted_by else count

    if isinstance(each.each, Field):
        empty: list[Any] = [each.each.default] * count
        return FieldListField(each.name, empty, _field_of(each.each), count_from=count_from)
    layer = layers[each.name]
    return PacketListField(each.name, [layer() for _ in range(count)], layer, count_from=count_from)
