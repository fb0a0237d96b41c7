"""Syntax of values in commands: numbers, IPv4, IPv6 and MAC addresses, and keys of each match kind.

A 32-bit value may be an IPv4 address, a 48-bit value a MAC, a 128-bit value an IPv6 address; every value may be a
decimal, 0x, 0o or 0b number. `10.0.1.0/24` is a longest prefix, `0x10&&&0xf0` a value and its mask, `1->9` a range.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from finsy.proto import p4i, p4r

from weft.controller.errors import CommandError

_NUMBER = re.compile(r"\A(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[0-9]+)\Z")
_MAC = re.compile(r"\A[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}\Z")
_MOST_CHARACTERS = 1024
_Kind = p4i.MatchField


def parse_value(text: str, width_bits: int, what: str) -> int:
    """Return a value of `width_bits` bits. Raises CommandError: it is invalid or does not fit."""
    value = _number(text, width_bits)
    if value is None:
        forms = {32: ", 10.0.1.1", 48: ", 08:00:00:00:01:11", 128: ", fd00::1"}.get(width_bits, "")
        raise CommandError(f"{text[:80]!r} is not a value", place=what, valid=f"such as 7, 0x1f{forms}")
    if value >> width_bits:
        raise CommandError(
            f"{text[:80]!r} does not fit into {width_bits} bits",
            place=what,
            valid=f"0 to {(1 << width_bits) - 1}",
        )
    return value


def _number(text: str, width_bits: int) -> int | None:
    try:
        if width_bits == 32 and "." in text:
            return int(IPv4Address(text))
        if width_bits == 48 and ":" in text:
            return int("".join(f"{int(octet, 16):02x}" for octet in text.split(":")), 16) if _MAC.match(text) else None
        if width_bits == 128 and ":" in text:
            return int(IPv6Address(text))
    except AddressValueError:
        return None
    if len(text) > _MOST_CHARACTERS or not _NUMBER.match(text):
        return None
    # Python rejects decimal numbers with leading zeros.
    return int(text, 0) if text[:2].lower() in ("0x", "0o", "0b") else int(text)


def parse_whole(text: str, low: int, high: int, what: str) -> int:
    """Return a whole number in a range. Raises CommandError."""
    value = _number(text, 0)
    if value is None or not low <= value <= high:
        raise CommandError(f"{text[:80]!r} is out of range", place=what, valid=f"{low} to {high}")
    return value


def encoded(value: int) -> bytes:
    """Return a value as P4Runtime's canonical bytes, the shortest form (section 8.4)."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def parse_match(field: p4i.MatchField, text: str) -> p4r.FieldMatch | None:
    """Return the match of a key field; None if it matches every value. Raises CommandError."""
    what = f"match field {field.name}"
    _require_bits(field, what)
    reader = _READERS.get(field.match_type)
    if reader is None:
        kind = _Kind.MatchType.Name(field.match_type)
        raise CommandError(f"keys of match type {kind} are not supported here", place=what)
    return reader(field, text, what)


def _require_bits(field: p4i.MatchField, what: str) -> None:
    if field.bitwidth == 0:
        raise CommandError("its type is translated to text, which simple_switch_CLI does not support", place=what)


def _exact(field: p4i.MatchField, text: str, what: str) -> p4r.FieldMatch:
    value = parse_value(text, field.bitwidth, what)
    return p4r.FieldMatch(field_id=field.id, exact=p4r.FieldMatch.Exact(value=encoded(value)))


def _lpm(field: p4i.MatchField, text: str, what: str) -> p4r.FieldMatch | None:
    first, slash, last = text.rpartition("/")
    if not slash:
        raise CommandError(f"{text[:80]!r} has no prefix length", place=what, valid="such as 10.0.1.0/24")
    length = parse_whole(last, 0, field.bitwidth, f"{what}: prefix length")
    value = parse_value(first, field.bitwidth, what) >> (field.bitwidth - length) << (field.bitwidth - length)
    if length == 0:
        return None
    return p4r.FieldMatch(field_id=field.id, lpm=p4r.FieldMatch.LPM(value=encoded(value), prefix_len=length))


def _masked(field: p4i.MatchField, text: str, what: str) -> tuple[int, int]:
    first, sign, last = text.partition("&&&")
    if not sign:
        raise CommandError(f"{text[:80]!r} has no mask", place=what, valid="such as 0x0800&&&0xffff")
    mask = parse_value(last, field.bitwidth, f"{what}: mask")
    return parse_value(first, field.bitwidth, what) & mask, mask


def _ternary(field: p4i.MatchField, text: str, what: str) -> p4r.FieldMatch | None:
    value, mask = _masked(field, text, what)
    if mask == 0:
        return None
    return p4r.FieldMatch(field_id=field.id, ternary=p4r.FieldMatch.Ternary(value=encoded(value), mask=encoded(mask)))


def _range(field: p4i.MatchField, text: str, what: str) -> p4r.FieldMatch | None:
    first, sign, last = text.partition("->")
    if not sign:
        raise CommandError(f"{text[:80]!r} is not a range", place=what, valid="such as 1->1023")
    low, high = (parse_value(each, field.bitwidth, what) for each in (first, last))
    if low > high:
        raise CommandError(f"{text[:80]!r} ends before it begins", place=what, valid="the lower value first")
    if low == 0 and high == (1 << field.bitwidth) - 1:
        return None
    return p4r.FieldMatch(field_id=field.id, range=p4r.FieldMatch.Range(low=encoded(low), high=encoded(high)))


def _optional(field: p4i.MatchField, text: str, what: str) -> p4r.FieldMatch | None:
    """Return an optional match; as in BMv2, it may have a mask of all bits, or of 0 for any value."""
    if "&&&" in text:
        value, mask = _masked(field, text, what)
        if mask not in (0, (1 << field.bitwidth) - 1):
            raise CommandError(f"mask {mask:#x}", place=what, valid="all bits, or 0 for any value")
        if mask == 0:
            return None
    else:
        value = parse_value(text, field.bitwidth, what)
    return p4r.FieldMatch(field_id=field.id, optional=p4r.FieldMatch.Optional(value=encoded(value)))


_READERS: dict[int, Callable[[p4i.MatchField, str, str], p4r.FieldMatch | None]] = {
    _Kind.EXACT: _exact,
    _Kind.LPM: _lpm,
    _Kind.TERNARY: _ternary,
    _Kind.RANGE: _range,
    _Kind.OPTIONAL: _optional,
}


def shown_match(field: p4i.MatchField, match: p4r.FieldMatch | None) -> str:
    """Return a key field in hexadecimal, in the syntax that the commands accept."""
    full = (1 << field.bitwidth) - 1
    if match is None:
        return {_Kind.LPM: "0x0/0", _Kind.RANGE: f"0x0->{full:#x}"}.get(field.match_type, "0x0&&&0x0")
    kind = match.WhichOneof("field_match_type")
    if kind == "lpm":
        return f"{_hex(match.lpm.value)}/{match.lpm.prefix_len}"
    if kind == "ternary":
        return f"{_hex(match.ternary.value)}&&&{_hex(match.ternary.mask)}"
    if kind == "range":
        return f"{_hex(match.range.low)}->{_hex(match.range.high)}"
    return _hex(match.exact.value if kind == "exact" else match.optional.value)


def _hex(value: bytes) -> str:
    return f"{int.from_bytes(value, 'big'):#x}"


def shown_parameters(action: p4r.Action) -> str:
    """Return an action's parameters in order, in hexadecimal."""
    return ", ".join(_hex(each.value) for each in sorted(action.params, key=lambda each: each.param_id))
