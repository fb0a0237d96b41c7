"""Key sets of table entries, as lowering leaves them: None for any value, an int, ("mask", …) or ("range", …)."""

from __future__ import annotations

from typing import Any

FORMS: dict[str, frozenset[str]] = {
    "exact": frozenset({"value"}),
    "lpm": frozenset({"value", "mask", "any"}),
    "ternary": frozenset({"value", "mask", "any"}),
    "optional": frozenset({"value", "any"}),
    "range": frozenset({"value", "range", "any"}),
}
"""Forms of key sets that BMv2 can match with each kind of key."""
FORM_NAMES = {"any": "value to be left open", "value": "value", "mask": "mask", "range": "range of values"}


def form(keyset: Any) -> str:
    """One of FORM_NAMES."""
    if keyset is None:
        return "any"
    return str(keyset[0]) if isinstance(keyset, tuple) else "value"


def bounds(keyset: Any, width: int) -> tuple[int, int]:
    """The lowest and the highest value, for a key that is matched as a range."""
    full = (1 << width) - 1
    if keyset is None:
        return 0, full
    if isinstance(keyset, int):
        return keyset & full, keyset & full
    return keyset[1] & full, keyset[2] & full


def crosses_zero(keyset: Any) -> bool:
    """Whether a range of a signed key has values on both sides of 0, which are far apart as unsigned numbers."""
    return form(keyset) == "range" and keyset[1] < 0 <= keyset[2]


def value_and_mask(keyset: Any, width: int) -> tuple[int, int]:
    """The bits that count and which ones do, for any other key."""
    full = (1 << width) - 1
    if keyset is None:
        return 0, 0
    if isinstance(keyset, int):
        return keyset & full, full
    return keyset[1] & keyset[2] & full, keyset[2] & full


def is_prefix(mask: int, width: int) -> bool:
    """The mask's ones stand in front of its zeros."""
    zeros = ~mask & ((1 << width) - 1)
    return zeros & (zeros + 1) == 0


def canonical(keyset: Any, match_kind: str, width: int) -> tuple[int, int]:
    """Equal for key sets that match the same values."""
    return (bounds if match_kind == "range" else value_and_mask)(keyset, width)
