"""How buffers are cut: over planes, over ranks, into pieces that pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from weft.errors import InvalidValueError

BLOCK_ELEMENTS = 64
"""Stripes start on whole aggregation packets, of 64 lanes with an element each."""


def stripe(element_count: int, plane_rates_bps: Sequence[int]) -> list[range]:
    """Cut the elements into one contiguous range per plane, in proportion to the planes' rates.

    All ranges but the last start and end on multiples of 64 elements, so small buffers may leave planes idle. A plane
    of rate 0 is not used. Raises ValueError if there is no other, or for a rate below 0.
    """
    if min(plane_rates_bps, default=0) < 0 or not any(plane_rates_bps):
        raise InvalidValueError(f"plane rates {list(plane_rates_bps)}", valid="none below 0, one or more above 0")
    blocks = -(-element_count // BLOCK_ELEMENTS)
    total_bps = sum(plane_rates_bps)
    shares = [blocks * rate // total_bps for rate in accumulate(plane_rates_bps)]
    bounds = [0, *(min(share * BLOCK_ELEMENTS, element_count) for share in shares)]
    bounds[-1] = element_count
    return [range(start, end) for start, end in pairwise(bounds)]


def joined(plane_rates_bps: Sequence[int]) -> tuple[int, ...]:
    """Return rates with which data is divided among planes where each queue pair uses all of them: the first has all.

    Channels then bear number 0.
    """
    return (sum(plane_rates_bps), *(0 for _ in plane_rates_bps[1:]))


def split_evenly(elements: range, parts: int) -> list[range]:
    """Cut a range into `parts` ranges with lengths that differ by at most one; some are empty if it is short."""
    bounds = [elements.start + len(elements) * part // parts for part in range(parts + 1)]
    return [range(start, end) for start, end in pairwise(bounds)]
