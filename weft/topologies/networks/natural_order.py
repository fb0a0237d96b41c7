"""The order in which Mininet starts nodes: numbers inside names are compared as numbers, so s2 precedes s10."""

from __future__ import annotations

import re


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key for names: digits compare as numbers, the rest as text."""
    pieces = re.split("([0-9]{1,18})", name)
    return tuple((0, int(piece), "") if number % 2 else (1, 0, piece) for number, piece in enumerate(pieces))
