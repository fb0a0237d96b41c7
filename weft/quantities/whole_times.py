"""Times from users' classes, in picoseconds: integers, even if Python represents them as floats."""

from __future__ import annotations

import math

from weft.quantities.limits import MAX_TIME_PS


def whole_ps(time_ps: float) -> int:
    """Return a time as an integer (1e6 is a float in Python). Raises ValueError."""
    # Check the bound first: Python integers may be too large for a float.
    if abs(time_ps) > MAX_TIME_PS or not math.isfinite(time_ps) or time_ps != int(time_ps):
        raise ValueError(f"{time_ps} ps (valid: a whole number, up to {MAX_TIME_PS})")
    return int(time_ps)


def delay_ps_of(delay_ps: float) -> int:
    """Return a delay as an integer. Raises ValueError, also for negative delays."""
    found = whole_ps(delay_ps)
    if found < 0:
        raise ValueError(f"a delay of {delay_ps} ps (valid: 0 and more)")
    return found
