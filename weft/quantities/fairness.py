"""How evenly a thing is shared."""

from __future__ import annotations

import math
from collections.abc import Sequence


def jain_index(shares: Sequence[float]) -> float:
    """Return Jain's fairness index, 1/n to 1; 1 where nothing was shared (Jain, Chiu and Hawe 1984)."""
    squares = math.fsum(share * share for share in shares)
    return math.fsum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
