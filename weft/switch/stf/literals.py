"""Numbers of STF scripts: decimal, 0x, 0b and 0o, in keys with `*` for digits that do not count."""

from __future__ import annotations

from weft.switch.stf.errors import Place, StfSyntaxError
from weft.switch.stf.statements import KeyValue
from weft.switch.stf.tokens import TokenReader

LARGEST_CELL = (1 << 63) - 1
"""Largest value of counters, meters and ids; keys, arguments and registers may be wider."""
_LONGEST = 300
_BITS_PER_DIGIT = {"0x": 4, "0o": 3, "0b": 1}


def read_number(text: str, place: Place) -> int:
    """Return the number. Raises StfSyntaxError for wildcards and too many digits."""
    check_length(text, place)
    if "*" in text:
        raise StfSyntaxError(place, f"{text}: '*' stands only in keys and expected packets")
    prefix = text[:2].lower()
    if prefix in _BITS_PER_DIGIT:
        return int(text[2:], 1 << _BITS_PER_DIGIT[prefix])
    return int(text)


def read_bounded(text: str, place: Place) -> int:
    """Return the number. Raises StfSyntaxError if it exceeds LARGEST_CELL."""
    value = read_number(text, place)
    if value > LARGEST_CELL:
        raise StfSyntaxError(place, f"{text} is out of range", valid=f"to {LARGEST_CELL:#x}")
    return value


def check_length(text: str, place: Place) -> None:
    """Check that a number has at most as many digits as Python converts in any base."""
    if len(text) > _LONGEST:
        raise StfSyntaxError(place, f"a number of {len(text)} digits is too long", valid=f"to {_LONGEST}")


def read_key_value(reader: TokenReader) -> KeyValue:
    """A number with or without wildcards, `value/length`, `value&&&mask` or `low->high`."""
    text = reader.take("number", "a value")
    if "*" in text:
        check_length(text, reader.place)
        return _with_wildcards(text)
    value = read_number(text, reader.place)
    for sign, part in (("/", "prefix_length"), ("&&&", "mask"), ("->", "high")):
        if reader.accept(sign):
            second = reader.take("number", f"a number after {sign!r}")
            return KeyValue(f"{text}{sign}{second}", value, **{part: read_number(second, reader.place)})
    return KeyValue(text, value)


def _with_wildcards(text: str) -> KeyValue:
    bits = _BITS_PER_DIGIT[text[:2].lower()]
    value = wildcards = 0
    for digit in text[2:]:
        value <<= bits
        wildcards <<= bits
        if digit == "*":
            wildcards |= (1 << bits) - 1
        else:
            value |= int(digit, 16)
    return KeyValue(text, value, wildcard_mask=wildcards)
