"""The check values that the definitions of the hash algorithms give."""

from __future__ import annotations

import pytest

from weft.switch.oracle.hashes import ALGORITHMS

CHECK = b"123456789"


@pytest.mark.parametrize(
    ("name", "data", "value"),
    [
        ("crc16", CHECK, 0xBB3D),
        ("crcCCITT", CHECK, 0x29B1),
        ("crc32", CHECK, 0xCBF43926),
        ("crc8_custom", CHECK, 0xF4),
        ("crc64_custom", CHECK, 0x46A5A9388A5BEFFE),
        ("xor16", b"\x12\x34\x56", 0x1234 ^ 0x5600),
        ("xor32", b"\x12\x34\x56\x78\x9a", 0x12345678 ^ 0x9A000000),
        ("csum16", bytes.fromhex("45000073000040004011 0000 c0a80001 c0a800c7"), 0xB861),
        ("identity", CHECK, 0x3132333435363738),
        ("xxh64", b"", 0xEF46DB3751D8E999),
        ("xxh64", b"abc", 0x44BC2CF5AD770999),
    ],
)
def test_check_values(name: str, data: bytes, value: int) -> None:
    assert ALGORITHMS[name](data) == value


def test_random_is_not_a_function_of_its_input() -> None:
    assert len({ALGORITHMS["random"](CHECK) for _ in range(4)}) > 1
