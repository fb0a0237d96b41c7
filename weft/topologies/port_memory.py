"""How much memory ports have where nothing says it: what switches of their rate have.

Both figures grow with the rate, and stay above the thresholds of ECN that the controller scales to each port's rate
(`weft.controller.features.ecn`). Neither is below 512 KiB, so that slow ports hold some hundred frames.
"""

from __future__ import annotations

from weft.topologies.parts import LinkSpec

_LEAST_BYTES = 512 * 1024
_LEAST_OF_BPS = 10 * 10**9
_SHARED_PS = 80 * 10**6
"""What a port adds to shared memory, as time at its rate: 10 MB for 1 Tb/s, as a Trident 3 (32 MB for 3.2 Tb/s) and a
Trident 4 (132 MB for 12.8 Tb/s) have."""


def default_queue_capacity_bytes(rate_bps: int) -> int:
    """Return what a congested port may hold that has memory of its own: 512 KiB for each 10 Gb/s, and at least that.

    Switches share their memory, of which one port may take half: 16 of 32 MB of a Trident 3 with an alpha of 1. At 100
    Gb/s this is a third of that, as several ports are congested at a time.
    """
    return max(_LEAST_BYTES, _LEAST_BYTES * rate_bps // _LEAST_OF_BPS)


def default_shared_bytes(rate_bps: int) -> int:
    """Return what a port adds to a memory that a switch's ports share: 1 MB for each 100 Gb/s, at least 512 KiB."""
    return max(_LEAST_BYTES, rate_bps * _SHARED_PS // (8 * 10**12))


def link_of(rate_bps: int, delay_ps: int, queue_capacity_bytes: int | None) -> LinkSpec:
    """Return a link, whose ports have the memory of their rate if no queue is given."""
    if queue_capacity_bytes is not None:
        return LinkSpec(rate_bps, delay_ps, queue_capacity_bytes)
    own_bytes, shared_bytes = default_queue_capacity_bytes(rate_bps), default_shared_bytes(rate_bps)
    return LinkSpec(rate_bps, delay_ps, own_bytes, None if shared_bytes == own_bytes else shared_bytes)
