"""CRC-32 against zlib, on both paths."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.engine._core import crc32


def test_check_value() -> None:
    # The check value that catalogues of CRCs give for CRC-32/ISO-HDLC.
    assert crc32(b"123456789") == 0xCBF43926
    assert crc32(b"123456789", portable=True) == 0xCBF43926


@pytest.mark.parametrize("size", [*range(140), 1024, 4096 + 17])
def test_every_length(size: int) -> None:
    data = bytes((37 * i + size) % 251 for i in range(size))
    assert crc32(data) == crc32(data, portable=True) == zlib.crc32(data)


@given(st.binary(max_size=5000))
def test_any_bytes(data: bytes) -> None:
    assert crc32(data) == crc32(data, portable=True) == zlib.crc32(data)
