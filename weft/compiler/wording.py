"""Parts of messages: numbers with their nouns, valid choices, names that look alike."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_NAMES_SHOWN = 8


def article(word: str) -> str:
    """A word with `a` or `an` before it."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural but for 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def choices(names: Iterable[object]) -> str:
    """`(valid: 'a', 'b')` for a message."""
    listed = [f"'{name}'" for name in names]
    if not listed:
        return "(there are none)"
    shown = ", ".join(listed[:_NAMES_SHOWN]) + (", …" if len(listed) > _NAMES_SHOWN else "")
    return f"(valid: {shown})"


def hint(name: str, known: Iterable[str], cutoff: float = 0.7) -> str:
    """The end of a message that proposes the known name that looks most like `name`; empty if none does."""
    matches = get_close_matches(name, list(known), 1, cutoff)
    return f"; did you mean '{matches[0]}'?" if matches else ""
