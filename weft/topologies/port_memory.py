"""Default memory of ports, as real switches of their rate have.

Both figures grow with the rate and stay above the ECN thresholds that the controller scales to each port's rate
(`weft.controller.features.ecn`). Both are at least 512 KiB, so that slow ports hold several hundred frames.
"""

from __future__ import annotations

from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.topologies.parts import LinkSpec

_LEAST_BYTES = 512 * 1024
_LEAST_OF_BPS = 10 * 10**9
_SHARED_PS = 80 * PS_PER_US
"""A port's contribution to shared memory, as time at its rate: 10 MB for 1 Tb/s, as in a Trident 3 (32 MB for 3.2 Tb/s)
and a Trident 4 (132 MB for 12.8 Tb/s)."""


def default_queue_capacity_bytes(rate_bps: int) -> int:
    """Return the default dedicated memory of a port: 512 KiB for each 10 Gb/s, at least 512 KiB.

    Real switches share memory, and one port may take half: 16 of 32 MB in a Trident 3 with an alpha of 1. The default
    at 100 Gb/s is a third of that, because several ports are congested at a time.
    """
    return max(_LEAST_BYTES, _LEAST_BYTES * rate_bps // _LEAST_OF_BPS)


def default_shared_bytes(rate_bps: int) -> int:
    """Return a port's contribution to its switch's shared memory: 1 MB for each 100 Gb/s, at least 512 KiB."""
    return max(_LEAST_BYTES, rate_bps * _SHARED_PS // (8 * PS_PER_S))


def link_of(rate_bps: int, delay_ps: int, queue_capacity_bytes: int | None) -> LinkSpec:
    """Return a link; without a given queue, its ports have the default memory of their rate."""
    if queue_capacity_bytes is not None:
        return LinkSpec(rate_bps, delay_ps, queue_capacity_bytes)
    own_bytes, shared_bytes = default_queue_capacity_bytes(rate_bps), default_shared_bytes(rate_bps)
    return LinkSpec(rate_bps, delay_ps, own_bytes, None if shared_bytes == own_bytes else shared_bytes)
