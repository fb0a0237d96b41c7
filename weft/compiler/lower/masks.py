"""Key sets of select: values and masks over the byte-padded keys (BMv2's JSON format, parsers)."""

from __future__ import annotations

from itertools import product
from math import prod

Ternary = tuple[int, int]


def range_to_masks(low: int, high: int, width: int) -> list[Ternary]:
    """Least list of (value, mask) that matches exactly low..high of a `width`-bit key."""
    masks: list[Ternary] = []
    full = (1 << width) - 1
    while low <= high:
        size = low & -low if low else 1 << width
        while size > high - low + 1:
            size >>= 1
        masks.append((low, full & ~(size - 1)))
        low += size
    return masks


def key_matches(keyset: object, width: int) -> list[Ternary]:
    """(value, mask) alternatives of one key: None any, int, ("mask", …), ("range", …)."""
    full = (1 << width) - 1
    if keyset is None:
        return [(0, 0)]
    if isinstance(keyset, int):
        return [(int(keyset) & full, full)]
    assert isinstance(keyset, tuple)
    kind, first, second = keyset
    if kind == "mask":
        return [(first & second & full, second & full)]
    return signed_range_to_masks(first, second, width)


def signed_range_to_masks(low: int, high: int, width: int) -> list[Ternary]:
    """The same where `low` and `high` may be negative, as for an int<W> key in two's complement."""
    full = (1 << width) - 1
    if low >= 0:
        return range_to_masks(low, high, width)
    if high < 0:
        return range_to_masks(low & full, high & full, width)
    return range_to_masks(low & full, full, width) + range_to_masks(0, high, width)


def combination_count(keysets: list[object], widths: list[int]) -> int:
    """How many pairs `combine` would give."""
    return prod(len(key_matches(keyset, width)) for keyset, width in zip(keysets, widths, strict=True))


def combine(keysets: list[object], widths: list[int]) -> list[Ternary]:
    """(value, mask) over all keys, each padded to whole bytes."""
    combined: list[Ternary] = []
    alternatives = [key_matches(keyset, width) for keyset, width in zip(keysets, widths, strict=True)]
    for choice in product(*alternatives):
        value = mask = 0
        for (key_value, key_mask), width in zip(choice, widths, strict=True):
            padded = (width + 7) // 8 * 8
            value = (value << padded) | key_value
            mask = (mask << padded) | key_mask
        combined.append((value, mask))
    return combined
