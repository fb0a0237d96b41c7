"""Checks of a link's figures, shared by all builders."""

from __future__ import annotations

import math

from weft.quantities.limits import (
    MAX_DELAY_PS,
    MAX_QUEUE_CAPACITY_BYTES,
    MAX_RATE_BPS,
    MIN_QUEUE_CAPACITY_BYTES,
    MIN_RATE_BPS,
)
from weft.topologies.errors import TopologyError, require_range


def rate(name: str, rate_bps: float) -> int:
    """Check a link's rate and return it; TopologyError names the parameter and the valid range."""
    return require_range(name, rate_bps, MIN_RATE_BPS, MAX_RATE_BPS)


def uplink_rate(
    name: str,
    uplink_rate_bps: float | None,
    oversubscription: float | None,
    downlink_rate_bps: int,
    downlinks: int,
    uplinks: int,
    prefix: str = "",
) -> int:
    """Return the rate of a tier's uplinks: as given, from the oversubscription, or equal to the downlinks' rate.

    Oversubscription is total downlink bandwidth divided by total uplink bandwidth. `prefix` precedes it in its
    parameter's name. Raises as `rate`.
    """
    over = f"{prefix}oversubscription={oversubscription}"
    if oversubscription is None:
        return downlink_rate_bps if uplink_rate_bps is None else rate(name, uplink_rate_bps)
    if uplink_rate_bps is not None:
        raise TopologyError(f"{name}={uplink_rate_bps} and {over} exclude each other")
    is_number = isinstance(oversubscription, int | float) and math.isfinite(oversubscription)
    if not (is_number and oversubscription > 0):
        raise TopologyError(f"{over} is out of range (valid: above 0)")
    if uplinks == 0:
        raise TopologyError(f"{over} means nothing without spines (spines=0)")
    return rate(name, float(round(downlinks * downlink_rate_bps / (uplinks * oversubscription))))


def delay(delay_ps: int, name: str = "delay_ps") -> int:
    """Check a link's propagation delay and return it; raises as `rate`."""
    return require_range(name, delay_ps, 0, MAX_DELAY_PS)


def queue_capacity(queue_capacity_bytes: int) -> int:
    """Check a port's queue capacity and return it; raises as `rate`."""
    return require_range(
        "queue_capacity_bytes", queue_capacity_bytes, MIN_QUEUE_CAPACITY_BYTES, MAX_QUEUE_CAPACITY_BYTES
    )


def optional_queue_capacity(queue_capacity_bytes: int | None) -> int | None:
    """Check a port's queue capacity and return it, or None for its rate's default; raises as `rate`."""
    return None if queue_capacity_bytes is None else queue_capacity(queue_capacity_bytes)
