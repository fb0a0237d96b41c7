"""Limits of links, queues, flows and times, shared by scenario files and the Python builders."""

from __future__ import annotations

import math

from weft.errors import InvalidValueError
from weft.quantities.units import PS_PER_S, S_PER_DAY

MIN_RATE_BPS = 10**6
MAX_RATE_BPS = 10**14
MAX_DELAY_PS = PS_PER_S
MAX_TIME_PS = 1000 * PS_PER_S
"""Largest start time or duration that users may give. The engine's clock ends after 106 days."""
MAX_DURATION_S = 36500 * S_PER_DAY
"""A hundred years: longer than a part lasts, as its mean time between failures may be."""
MIN_QUEUE_CAPACITY_BYTES = 1518
MAX_QUEUE_CAPACITY_BYTES = 2**34
MAX_FLOW_BYTES = 1 << 31
"""Longest flow: it is one WRITE, and this is the specification's limit for it."""
MAX_FLOW_QUEUE_PAIRS = 256
"""Most queue pairs that may share a flow."""


def whole_ps(time_ps: float) -> int:
    """Return a time as an integer (1e6 is a float in Python). Raises ValueError."""
    # Check the bound first: Python integers may be too large for a float.
    if abs(time_ps) > MAX_TIME_PS or not math.isfinite(time_ps) or time_ps != int(time_ps):
        raise InvalidValueError(f"{time_ps} ps", valid=f"a whole number, up to {MAX_TIME_PS}")
    return int(time_ps)


def delay_ps_of(delay_ps: float) -> int:
    """Return a delay as an integer. Raises ValueError, also for negative delays."""
    found = whole_ps(delay_ps)
    if found < 0:
        raise InvalidValueError(f"a delay of {delay_ps} ps", valid="0 and more")
    return found
