"""Packet-in and packet-out (P4Runtime §16.1).

Converts metadata to and from the header before the payload.
"""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from weft.switch.p4runtime.errors import choices, invalid, place
from weft.switch.p4runtime.pipeline import BoundMetadata
from weft.switch.p4runtime.translation import decode_value, encode_value


def encode_packet_out(fields: Sequence[BoundMetadata], message: p4r.PacketOut) -> bytes:
    """Return the packet for the CPU port: the packet_out header, then the payload."""
    known = {field.id: field for field in fields}
    given: dict[int, int] = {}
    for metadata in message.metadata:
        field = known.get(metadata.metadata_id)
        if field is None:
            valid = choices(f"{each.id} ({each.name})" for each in fields)
            raise invalid(f"unknown metadata id {metadata.metadata_id}", valid=valid)
        if metadata.metadata_id in given:
            raise invalid(f"metadata {field.name!r} is given twice")
        with place(f"metadata {field.name!r}"):
            given[field.id] = decode_value(metadata.value, field)
    header = total_bits = 0
    for field in fields:
        if field.id not in given and not field.is_padding:
            raise invalid(f"metadata {field.name!r} is missing")
        header = header << field.width_bits | given.get(field.id, 0)
        total_bits += field.width_bits
    return header.to_bytes(total_bits // 8, "big") + message.payload


def decode_packet_in(fields: Sequence[BoundMetadata], data: bytes) -> p4r.PacketIn | None:
    """Return the message for a packet from the CPU port; None if it is shorter than the packet_in header."""
    header_bytes = sum(field.width_bits for field in fields) // 8
    if len(data) < header_bytes:
        return None
    message = p4r.PacketIn(payload=data[header_bytes:])
    header = int.from_bytes(data[:header_bytes], "big")
    shift = header_bytes * 8
    for field in fields:
        shift -= field.width_bits
        value = header >> shift & ((1 << field.width_bits) - 1)
        message.metadata.add(metadata_id=field.id, value=encode_value(value, field))
    return message
