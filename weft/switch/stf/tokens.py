"""Splits a line of an STF script into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weft.switch.stf.errors import Place, StfSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\f]+)
  | (?P<comment>\#.*)
  | (?P<quoted>"[^"]+")
  | (?P<decimal>[0-9]+\.[0-9]+)
  | (?P<number>0[xX][0-9a-fA-F*]+ | 0[bB][01*]+ | 0[oO][0-7*]+ | [0-9]+)
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<sign>&&&|->|==|!=|<=|>=|[<>=:,.()\[\]/])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is number, decimal, name or sign; the end of the line is a sign without text."""

    kind: str
    text: str


END = Token("sign", "")


def tokenize(text: str, place: Place, start: int = 0) -> list[Token]:
    """Return the tokens of a line from `start` on, without comments.

    Raises StfSyntaxError at a character that begins no token.
    """
    tokens = []
    at = start
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise StfSyntaxError(place, f"column {at + 1}: nothing begins with {text[at]!r}")
        at = found.end()
        kind = found.lastgroup or ""
        if kind == "quoted":
            tokens.append(Token("name", found.group()[1:-1]))
        elif kind not in ("space", "comment"):
            tokens.append(Token(kind, found.group()))
    return tokens


class TokenReader:
    """Takes a line's tokens one by one; every error names the expected and the actual token."""

    def __init__(self, text: str, place: Place, start: int = 0) -> None:
        self.place = place
        self._tokens = tokenize(text, place, start)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return the token `ahead` positions after the next one; END past the last one."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def next(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._at += 1
        return token

    def accept(self, sign: str) -> bool:
        """Take the sign if it comes next."""
        if self.peek() != Token("sign", sign):
            return False
        self._at += 1
        return True

    def require(self, sign: str) -> None:
        """Take the sign, which must come next."""
        if not self.accept(sign):
            raise self.expected(repr(sign))

    def take(self, kind: str, what: str) -> str:
        """Take a token of this kind and return its text."""
        if self.peek().kind != kind:
            raise self.expected(what)
        return self.next().text

    def end(self) -> None:
        """Require that no token is left."""
        if self.peek() is not END:
            raise self.expected("the end of the line")

    def expected(self, what: str) -> StfSyntaxError:
        """Return the error for a missing `what`."""
        found = self.peek()
        shown = "the line ends" if found is END else f"found {found.text!r}"
        return StfSyntaxError(self.place, f"expected {what}, {shown}")
