"""Is the result of a collective right? NumPy says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traffic.aggregation_format import LANE_COUNT


@dataclass(frozen=True)
class Verdict:
    """How the ranks' results compare with NumPy's.

    `wrong` counts elements, over all ranks, outside the bound; `largest_error` and `bound` are absolute, the bound
    being the one of the element with the largest error; `identical` says whether all ranks hold the same bits.
    """

    wrong: int
    identical: bool
    largest_error: float
    bound: float

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return self.wrong == 0 and self.identical


def verify_all_reduce_sum(
    inputs: list[NDArray[np.generic]], results: list[NDArray[np.generic]], algorithm: str
) -> Verdict:
    """Compare all-reduce results with NumPy's sum.

    int32 sums wrap and must agree bit for bit. float32 must lie within the algorithm's bound: for a ring, n − 1
    roundings of partial sums (n − 1)·ε·Σ|x|; in the network, block floating point's, see ARCHITECTURE.md.
    """
    stacked = np.stack(inputs)
    identical = all(result.tobytes() == results[0].tobytes() for result in results)
    if stacked.dtype == np.int32:
        expected = stacked.sum(axis=0, dtype=np.int64).astype(np.int32)
        differences = np.abs(np.stack(results).astype(np.int64) - expected)
        return Verdict(int(np.count_nonzero(differences)), identical, float(differences.max()), 0.0)
    exact = stacked.astype(np.float64).sum(axis=0)
    bound = _ring_bound(stacked) if algorithm == "ring" else _block_bound(stacked)
    errors = np.stack([np.abs(result.astype(np.float64) - exact) for result in results])
    # A NaN is no number within any bound.
    wrong = int(np.count_nonzero(~(errors <= bound)))
    worst = np.unravel_index(int(np.argmax(np.nan_to_num(errors, nan=np.inf))), errors.shape)
    return Verdict(wrong, identical, float(errors[worst]), float(bound[worst[-1]]))


def _ring_bound(stacked: NDArray[np.generic]) -> NDArray[np.float64]:
    ranks = stacked.shape[0]
    magnitude: NDArray[np.float64] = np.abs(stacked.astype(np.float64)).sum(axis=0)
    return np.asarray((ranks - 1) * float(np.finfo(np.float32).eps) * magnitude)


def _block_bound(stacked: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return n·½·2^(e − 31 + b) per element plus one rounding to float32, e being the block's exponent.

    b and e as in ARCHITECTURE.md, "Float32".
    """
    ranks, elements = stacked.shape
    padded = np.zeros(-(-elements // LANE_COUNT) * LANE_COUNT)
    padded[:elements] = np.abs(stacked.astype(np.float64)).max(axis=0)
    largest = padded.reshape(-1, LANE_COUNT).max(axis=1)
    exponents = np.frexp(largest)[1]
    headroom_bits = math.ceil(math.log2(ranks if ranks <= 128 else ranks + 1))
    quantum = np.where(largest > 0, np.ldexp(1.0, exponents - 31 + headroom_bits), 0.0)
    per_element = np.repeat(ranks * 0.5 * quantum, LANE_COUNT)[:elements]
    float32 = np.finfo(np.float32)
    # Below the normal numbers, rounding is by an absolute amount.
    rounding = np.maximum(
        np.abs(stacked.astype(np.float64).sum(axis=0)) * float(float32.eps), float(float32.smallest_subnormal)
    )
    return np.asarray(per_element + rounding, dtype=np.float64)
