"""What a link may be like, the same for every builder."""

from __future__ import annotations

from topologies.errors import require_range

_MAX_RATE_BPS = 10**13
_MAX_DELAY_PS = 10**13
_MIN_QUEUE_CAPACITY_BYTES = 1518
_MAX_QUEUE_CAPACITY_BYTES = 2**40


def rate(name: str, rate_bps: float) -> int:
    """Return a rate that a link may have; TopologyError names the parameter and the valid range."""
    return require_range(name, rate_bps, 1, _MAX_RATE_BPS)


def delay(delay_ps: int) -> int:
    """Return a propagation delay that a link may have; raises as `rate`."""
    return require_range("delay_ps", delay_ps, 0, _MAX_DELAY_PS)


def queue_capacity(queue_capacity_bytes: int) -> int:
    """Return a queue that a port may have; raises as `rate`."""
    return require_range(
        "queue_capacity_bytes", queue_capacity_bytes, _MIN_QUEUE_CAPACITY_BYTES, _MAX_QUEUE_CAPACITY_BYTES
    )
