"""Calculations (hashes and checksums) over fields, constants, headers and the payload."""

from __future__ import annotations

from collections.abc import Sequence

from weft.switch.bmv2json import Calculation, Constant, FieldRef, HeaderRef, Payload
from weft.switch.oracle.hashes import algorithm
from weft.switch.oracle.state import PacketState


def calculate(calculation: Calculation, packet: PacketState) -> int:
    """The value of a calculation for a packet."""
    compute = algorithm(calculation.algorithm, f"calculation {calculation.name!r}")
    return compute(input_bytes(calculation.input, packet))


def input_bytes(inputs: Sequence[FieldRef | Constant | HeaderRef | Payload], packet: PacketState) -> bytes:
    """Return the inputs concatenated bit by bit, padded with zero bits to whole bytes, then the payload.

    Invalid headers are skipped.
    """
    bits = width_bits = 0
    tail = b""
    for each in inputs:
        match each:
            case Constant(value, width):
                assert width is not None
                piece, piece_bits = value, width
            case HeaderRef(name):
                header = packet.headers[name]
                piece, piece_bits = header.to_bits() if header.valid else (0, 0)
            case FieldRef():
                piece, piece_bits = _field(each, packet)
            case Payload():
                tail = packet.payload
                continue
        bits = bits << piece_bits | piece
        width_bits += piece_bits
    padding_bits = -width_bits % 8
    return (bits << padding_bits).to_bytes((width_bits + padding_bits) // 8, "big") + tail


def _field(ref: FieldRef, packet: PacketState) -> tuple[int, int]:
    header = packet.headers[ref.header]
    if ref.is_validity:
        return int(header.valid), 1
    if not header.valid:
        return 0, 0
    width_bits = header.field_width_bits(header.type.field(ref.field))
    return header.get(ref.field) & ((1 << width_bits) - 1), width_bits
