"""Makes text from untrusted files safe to print on a terminal."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return text with unprintable characters escaped, because they could control the terminal.

    Characters in `kept`, such as newlines, are not escaped.
    """
    return "".join(
        letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text
    )
