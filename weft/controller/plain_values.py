"""Parses user-written values of entries: numbers, IP addresses, MAC addresses, and matches on them."""

from __future__ import annotations

import contextlib
import re
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from finsy.proto import p4i

from weft.controller.errors import SettingError

_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}\Z")
_MOST_DIGITS = 700
"""Most digits of a number as text; more than any field needs."""
_PAIRS = {
    p4i.MatchField.LPM: "[VALUE, LENGTH]",
    p4i.MatchField.TERNARY: "[VALUE, MASK]",
    p4i.MatchField.RANGE: "[LOW, HIGH]",
}
NEEDS_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)


def number_of(value: Any, bits: int) -> int:
    """Return a number, decimal or 0x text, IPv4, IPv6 or MAC address, or boolean as an unsigned number of `bits` bits.

    Negative numbers become two's complement. Raises SettingError: it is none of these, or does not fit.
    """
    found = _read(value)
    if found < -(1 << max(bits - 1, 0)) or found >= 1 << bits:
        raise SettingError(f"{_shown(value)} does not fit {bits} bits", valid=f"0 to {_largest(bits)}")
    return found & ((1 << bits) - 1)


def count_of(value: Any, bits: int) -> int:
    """Return `number_of` a value that cannot be negative: a priority, a port, a time."""
    if _read(value) < 0:
        raise SettingError(f"{_shown(value)} is negative", valid=f"0 to {_largest(bits)}")
    return number_of(value, bits)


def match_value(info: p4i.MatchField, value: Any) -> Any:
    """Return finsy's value for a key field: a number, or the pair of a prefix, mask or range.

    A single value matches exactly: the longest prefix, a mask of ones, a range of one. Raises SettingError.
    """
    bits, kind = info.bitwidth, info.match_type
    if bits == 0 and isinstance(value, str):
        return value  # a string that the switch's owner translates (P4Runtime, section 18.1)
    if kind in (p4i.MatchField.EXACT, p4i.MatchField.OPTIONAL):
        return number_of(_single(value), bits)
    first, second = _pair(value, kind, bits)
    if kind == p4i.MatchField.LPM:
        length = _read(second)
        if not 0 <= length <= bits:
            raise SettingError(f"a prefix of {length} bits", valid=f"0 to {bits}")
        mask = (1 << bits) - (1 << (bits - length))
        return number_of(first, bits) & mask, length
    if kind == p4i.MatchField.TERNARY:
        mask = number_of(second, bits)
        return number_of(first, bits) & mask, mask
    if kind == p4i.MatchField.RANGE:
        low, high = number_of(first, bits), number_of(second, bits)
        if low > high:
            raise SettingError(f"the range {_shown(value)} ends before it begins")
        return low, high
    raise SettingError(f"keys of match kind {info.other_match_type!r} cannot be filled")


def _pair(value: Any, kind: p4i.MatchField.MatchType.ValueType, bits: int) -> tuple[Any, Any]:
    if isinstance(value, str) and "/" in value and kind == p4i.MatchField.LPM:
        value = value.split("/", 1)
    if isinstance(value, str) and "&&&" in value and kind == p4i.MatchField.TERNARY:
        value = [each.strip() for each in value.split("&&&", 1)]
    if isinstance(value, list | tuple) and len(value) == 2:
        return value[0], value[1]
    if isinstance(value, list | tuple):
        raise SettingError(f"{_shown(value)} is not a match of this key", valid=_PAIRS[kind])
    if kind == p4i.MatchField.LPM:
        return value, bits
    return (value, (1 << bits) - 1) if kind == p4i.MatchField.TERNARY else (value, value)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _read(value: Any) -> int:
    value = _single(value)
    if isinstance(value, int | IPv4Address | IPv6Address):
        return int(value)
    if isinstance(value, str) and len(value) <= _MOST_DIGITS:
        text = value.strip()
        if _MAC.match(text):
            return int(text.replace(":", ""), 16)
        for read in (_integer, IPv4Address, IPv6Address):
            with contextlib.suppress(ValueError):
                return int(read(text))
    raise SettingError(f"{_shown(value)} is not a value", valid="a number, 0x…, an IPv4, IPv6 or MAC address")


def _integer(text: str) -> int:
    return int(text, 0)


def _largest(bits: int) -> str:
    return str((1 << bits) - 1) if bits <= 64 else f"2^{bits} - 1"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
