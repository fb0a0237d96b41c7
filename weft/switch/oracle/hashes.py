"""The hash and checksum algorithms of simple_switch. All take bytes and return a non-negative integer."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable

from weft.switch.backend import UnsupportedProgramError
from weft.switch.oracle.xxh64 import xxh64


def _reflected_crc(data: bytes, polynomial: int) -> int:
    """Least significant bit first, the polynomial's bits reversed; initial value and final XOR 0."""
    remainder = 0
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
    return remainder


def _forward_crc(data: bytes, polynomial: int, width_bits: int, initial: int) -> int:
    """Most significant bit first; final XOR 0."""
    top, mask = 1 << width_bits - 1, (1 << width_bits) - 1
    remainder = initial
    for byte in data:
        remainder ^= byte << width_bits - 8
        for _ in range(8):
            remainder = (remainder << 1 ^ (polynomial if remainder & top else 0)) & mask
    return remainder


def crc16(data: bytes) -> int:
    """CRC-16/ARC: polynomial 0x8005 reflected, initial value and final XOR 0."""
    return _reflected_crc(data, 0xA001)


def crc_ccitt(data: bytes) -> int:
    """CRC-16/CCITT-FALSE: polynomial 0x1021, initial value 0xFFFF."""
    return _forward_crc(data, 0x1021, width_bits=16, initial=0xFFFF)


def internet_checksum(data: bytes) -> int:
    """RFC 1071: complement of the one's complement sum of 16-bit words, the last one padded with zero."""
    if len(data) % 2:
        data += b"\0"
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def crc8(data: bytes) -> int:
    """CRC-8: polynomial 0x07, initial value 0."""
    return _forward_crc(data, 0x07, width_bits=8, initial=0)


def crc64(data: bytes) -> int:
    """CRC-64: polynomial 0x1B reflected, initial value and final XOR 0."""
    return _reflected_crc(data, 0xD800000000000000)


def _xor_words(data: bytes, size_bytes: int) -> int:
    result = 0
    for start in range(0, len(data), size_bytes):
        result ^= int.from_bytes(data[start : start + size_bytes].ljust(size_bytes, b"\0"), "big")
    return result


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc16_custom": crc16,
    "crc32": zlib.crc32,
    "crc32_custom": zlib.crc32,
    "crcCCITT": crc_ccitt,
    "csum16": internet_checksum,
    "cksum16": internet_checksum,
    "xor16": lambda data: _xor_words(data, 2),
    "xor32": lambda data: _xor_words(data, 4),
    "crc8_custom": crc8,
    "crc64_custom": crc64,
    "xxh64": xxh64,
    "bmv2_hash": xxh64,
    "random": lambda data: secrets.randbits(64),
    "identity": lambda data: int.from_bytes(data[:8], "big"),
}
"""Algorithms by simple_switch's name. The custom CRCs have their initial parameters, which cannot be changed here."""


def algorithm(name: str, where: str) -> Callable[[bytes], int]:
    """Return the algorithm called `name`. Raises UnsupportedProgramError, with the place, if it is unknown."""
    if name not in ALGORITHMS:
        raise UnsupportedProgramError(
            f"hash algorithm {name!r} is not supported", place=where, valid=sorted(ALGORITHMS)
        )
    return ALGORITHMS[name]
