"""Headers packed and unpacked bit by bit from their descriptions, as nothing else in Weft does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from weft.wire import Field, Header


def packed(header: Header, values: Mapping[str, int]) -> bytes:
    """Return the bytes of a header; `values` has every number of `Header.numbers`."""
    bits = "".join(f"{values[name]:0{field.bits}b}" for name, field in header.numbers())
    assert len(bits) == header.bits
    return int(bits, 2).to_bytes(header.size_bytes, "big")


def unpacked(header: Header, data: bytes) -> dict[str, int]:
    """Return every number of a header."""
    bits = f"{int.from_bytes(data[: header.size_bytes], 'big'):0{header.bits}b}"
    values = {}
    for name, field in header.numbers():
        values[name], bits = int(bits[: field.bits], 2), bits[field.bits :]
    return values


def valid_values(field: Field) -> st.SearchStrategy[int]:
    """Draw a value that a sender may write."""
    valid = field.valid_values
    return st.integers(valid[0], valid[-1]) if isinstance(valid, range) else st.sampled_from(valid)


def headers(header: Header, **given: int) -> st.SearchStrategy[dict[str, Any]]:
    """Draw valid values of all numbers of a header, but for those given."""
    return st.fixed_dictionaries(
        {name: st.just(given[name]) if name in given else valid_values(field) for name, field in header.numbers()}
    )
