"""P4Runtime's byte strings (§8.3): big-endian, sent in the shortest form, accepted in any length if the value fits."""

from __future__ import annotations

from weft.switch.p4runtime.errors import OUT_OF_RANGE, RequestError


def encode(value: int) -> bytes:
    """Return the canonical (shortest) string of a non-negative integer; zero is one byte."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def decode(data: bytes, width_bits: int) -> int:
    """Return the unsigned value of `data`. OUT_OF_RANGE if it is empty or does not fit `width_bits`."""
    if not data:
        raise RequestError(OUT_OF_RANGE, "the byte string is empty")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width_bits:
        limit = (1 << width_bits) - 1
        raise RequestError(OUT_OF_RANGE, f"value {value:#x} does not fit {width_bits} bits", valid=f"0 to {limit:#x}")
    return value


def decode_signed(data: bytes, width_bits: int) -> int:
    """Return the two's complement value of `data`, as `width_bits` bits.

    OUT_OF_RANGE as `decode`.
    """
    if not data:
        raise RequestError(OUT_OF_RANGE, "the byte string is empty")
    value = int.from_bytes(data, "big", signed=True)
    half = 1 << (width_bits - 1)
    if not -half <= value < half:
        raise RequestError(
            OUT_OF_RANGE, f"value {value} does not fit {width_bits} bits", valid=f"{-half} to {half - 1}"
        )
    return value % (1 << width_bits)


def encode_signed(bits: int, width_bits: int) -> bytes:
    """Return the canonical string of the two's complement value in `bits`."""
    value = bits - (1 << width_bits) if bits >> (width_bits - 1) else bits
    needed_bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((needed_bits + 7) // 8, "big", signed=True)
