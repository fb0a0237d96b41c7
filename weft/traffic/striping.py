"""How buffers are cut: over planes, over ranks, into pieces that pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

BLOCK_ELEMENTS = 64
"""Stripes start on whole aggregation packets."""


def stripe(element_count: int, plane_rates_bps: Sequence[int]) -> list[range]:
    """Cut the elements into one contiguous range per plane, in proportion to the planes' rates.

    All ranges but the last start and end on multiples of 64 elements, so small buffers may leave planes idle.
    Raises ValueError without a plane or for a rate of 0 or less.
    """
    if not plane_rates_bps or min(plane_rates_bps) <= 0:
        raise ValueError(f"plane rates {list(plane_rates_bps)} (valid: at least one, all above 0)")
    blocks = -(-element_count // BLOCK_ELEMENTS)
    total_bps = sum(plane_rates_bps)
    shares = [blocks * rate // total_bps for rate in accumulate(plane_rates_bps)]
    bounds = [0, *(min(share * BLOCK_ELEMENTS, element_count) for share in shares)]
    bounds[-1] = element_count
    return [range(start, end) for start, end in pairwise(bounds)]


def split_evenly(elements: range, parts: int) -> list[range]:
    """Cut a range into `parts` ranges whose lengths differ by at most one; some are empty if it is short."""
    bounds = [elements.start + len(elements) * part // parts for part in range(parts + 1)]
    return [range(start, end) for start, end in pairwise(bounds)]
