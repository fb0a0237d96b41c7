"""Conditions on packets as tokens: words, numbers, addresses, texts and signs, each with its column."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 4096
"""Most characters of a condition."""
_SHOWN = 60
"""Most characters shown in errors on each side of the place, and of a token."""


class ConditionError(ValueError):
    """An invalid condition; `column` counts from 1."""

    def __init__(self, column: int, problem: str) -> None:
        super().__init__(f"column {column}: {problem}")
        self.column = column

    def shown(self, text: str) -> str:
        """Return the problem and its place in the condition, with only the context if the condition is long."""
        line, place = re.sub(r"\s", " ", text), self.column - 1
        first, end = max(0, place - _SHOWN), place + _SHOWN
        before, after = "…" if first else "", "…" if end < len(line) else ""
        return f"{self}\n  {before}{line[first:end]}{after}\n  {' ' * (len(before) + place - first)}^"


def quoted(text: str) -> str:
    """Return a part of a condition quoted for messages, truncated if long."""
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…'"


@dataclass(frozen=True, slots=True)
class Literal:
    """A number; an address has its kind's width, and a prefix has a mask."""

    value: int
    width_bits: int | None = None
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is "word", "literal", "text", "sign" or "end"; `text` is as written."""

    kind: str
    text: str
    column: int
    literal: Literal | None = None

    @property
    def quoted(self) -> str:
        """Text for messages: "'and'", "the end"."""
        return self.text if self.kind == "end" else quoted(self.text)


_MAC = r"[0-9A-Fa-f]{1,2}(?::[0-9A-Fa-f]{1,2}){5}(?![0-9A-Fa-f:])"
_IPV6 = r"(?:[0-9A-Fa-f]{1,4}:){1,7}[0-9A-Fa-f:.]*(?:/\d{1,3})?|::[0-9A-Fa-f:.]*(?:/\d{1,3})?"
_IPV4 = r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,3})?"
_NUMBER = r"0[xX][0-9A-Fa-f_]+|0[bB][01_]+|\d[\d_]*"
_WORD = r"[A-Za-z_]\w*(?:\[\d+\])?(?:\.(?!isValid\()[A-Za-z_]\w*(?:\[\d+\])?)*(?:\.isValid\(\))?"
_SIGN = r"&&|\|\||==|!=|<=|>=|[<>!&()]"
_TOKEN = re.compile(
    rf"(?P<mac>{_MAC})|(?P<ipv6>{_IPV6})|(?P<ipv4>{_IPV4})|(?P<number>(?:{_NUMBER})(?!\w))"
    rf"|(?P<word>{_WORD})|\"(?P<text>[^\"]*)\"|'(?P<quoted>[^']*)'|(?P<sign>{_SIGN})"
)


def tokens_of(text: str) -> list[Token]:
    """Split a condition; the last token is the end.

    Raises:
        ConditionError: it is empty or too long, or has an invalid token.
    """
    if len(text) > LONGEST:
        raise ConditionError(LONGEST, f"a condition has at most {LONGEST} characters, this one {len(text)}")
    found, position = [], 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise ConditionError(position + 1, f"unexpected {text[position]!r}")
        found.append(_token(match, position + 1))
        position = match.end()
    if not found:
        raise ConditionError(1, "the condition is empty")
    return [*found, Token("end", "the end", len(text) + 1)]


def _token(match: re.Match[str], column: int) -> Token:
    kind = match.lastgroup
    assert kind is not None
    text = match.group(kind)
    if kind in _LITERALS:
        try:
            return Token("literal", text, column, _LITERALS[kind](text))
        except ValueError as error:
            raise ConditionError(column, str(error)) from None
    return Token("text" if kind == "quoted" else kind, text, column)


def _prefix(text: str, width_bits: int) -> Literal:
    address, slash, length = text.partition("/")
    value = int((ipaddress.IPv4Address if width_bits == 32 else ipaddress.IPv6Address)(address))
    if not slash:
        return Literal(value, width_bits)
    if int(length) > width_bits:
        raise ValueError(f"prefix length {length} is above {width_bits}")
    return Literal(value, width_bits, ((1 << width_bits) - 1) ^ ((1 << (width_bits - int(length))) - 1))


_LITERALS: dict[str, Callable[[str], Literal]] = {
    "mac": lambda text: Literal(int("".join(f"{part:0>2}" for part in text.split(":")), 16), 48),
    "ipv4": lambda text: _prefix(text, 32),
    "ipv6": lambda text: _prefix(text, 128),
    "number": lambda text: Literal(int(text, 0) if text[:2].lower() in ("0x", "0b") else int(text)),
}
