"""Hints for messages about a word that is none of the valid ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """Return a hint that names the nearest valid word, or all of them where none is near."""
    choices = sorted(valid)
    spelt_out = word.lower().replace("-", "_").replace("+", "_plus")
    if spelt_out in choices:
        return f"did you mean '{spelt_out}'?"
    nearest = difflib.get_close_matches(word, choices, n=1)
    return f"did you mean '{nearest[0]}'?" if nearest else f"valid: {', '.join(choices)}"
