"""XXH64 with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), BMv2's general-purpose hash."""

from __future__ import annotations

_MASK = 2**64 - 1
_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5
STRIPE_BYTES = 32


def _rotate(value: int, count: int) -> int:
    value &= _MASK
    return (value << count | value >> (64 - count)) & _MASK


def _round(accumulator: int, lane: int) -> int:
    return _rotate(accumulator + lane * _PRIME_2, 31) * _PRIME_1 & _MASK


def xxh64(data: bytes) -> int:
    """The 64-bit hash of `data`."""
    stripes_end = len(data) // STRIPE_BYTES * STRIPE_BYTES
    value = _PRIME_5 if stripes_end == 0 else _stripes(data[:stripes_end])
    value = value + len(data) & _MASK
    rest = data[stripes_end:]
    while len(rest) >= 8:
        value ^= _round(0, int.from_bytes(rest[:8], "little"))
        value = _rotate(value, 27) * _PRIME_1 + _PRIME_4 & _MASK
        rest = rest[8:]
    if len(rest) >= 4:
        value ^= int.from_bytes(rest[:4], "little") * _PRIME_1 & _MASK
        value = _rotate(value, 23) * _PRIME_2 + _PRIME_3 & _MASK
        rest = rest[4:]
    for byte in rest:
        value = _rotate(value ^ byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 33) * _PRIME_2 & _MASK
    value = (value ^ value >> 29) * _PRIME_3 & _MASK
    return value ^ value >> 32


def _stripes(data: bytes) -> int:
    lanes = [_PRIME_1 + _PRIME_2 & _MASK, _PRIME_2, 0, -_PRIME_1 & _MASK]
    for start in range(0, len(data), STRIPE_BYTES):
        for index in range(4):
            word = data[start + 8 * index : start + 8 * index + 8]
            lanes[index] = _round(lanes[index], int.from_bytes(word, "little"))
    value = sum(_rotate(lane, count) for lane, count in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    for lane in lanes:
        value = (value ^ _round(0, lane)) * _PRIME_1 + _PRIME_4 & _MASK
    return value
