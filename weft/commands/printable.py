"""What files of others hold, as a terminal may be given it."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return one line; letters that are not printable are escaped, as they could steer the terminal."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
