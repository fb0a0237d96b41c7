"""What files of others hold, as a terminal may be given it."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Return text in which letters that are not printable are escaped, as they could steer the terminal.

    Those of `kept` stay, such as ends of lines.
    """
    return "".join(
        letter if letter.isprintable() or letter in kept else repr(letter)[1:-1] for letter in text
    )
