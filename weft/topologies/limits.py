"""Checks of what a link is like, the same for every builder."""

from __future__ import annotations

from weft.quantities.limits import (
    MAX_DELAY_PS,
    MAX_QUEUE_CAPACITY_BYTES,
    MAX_RATE_BPS,
    MIN_QUEUE_CAPACITY_BYTES,
    MIN_RATE_BPS,
)
from weft.topologies.errors import require_range


def rate(name: str, rate_bps: float) -> int:
    """Return a rate that a link may have; TopologyError names the parameter and the valid range."""
    return require_range(name, rate_bps, MIN_RATE_BPS, MAX_RATE_BPS)


def delay(delay_ps: int, name: str = "delay_ps") -> int:
    """Return a propagation delay that a link may have; raises as `rate`."""
    return require_range(name, delay_ps, 0, MAX_DELAY_PS)


def queue_capacity(queue_capacity_bytes: int) -> int:
    """Return a queue that a port may have; raises as `rate`."""
    return require_range(
        "queue_capacity_bytes", queue_capacity_bytes, MIN_QUEUE_CAPACITY_BYTES, MAX_QUEUE_CAPACITY_BYTES
    )
