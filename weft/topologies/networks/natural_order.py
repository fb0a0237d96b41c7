"""The order in which Mininet starts nodes: numbers inside a name count as numbers, so that s2 is before s10."""

from __future__ import annotations

import re


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key to sort names by: their digits as numbers, all else as text."""
    pieces = re.split("([0-9]{1,18})", name)
    return tuple((0, int(piece), "") if number % 2 else (1, 0, piece) for number, piece in enumerate(pieces))
