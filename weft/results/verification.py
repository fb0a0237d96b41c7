"""Is the result of a collective right? NumPy says.

Sums of float32 overflow as NumPy's do: an infinity is right where float32 additions of the ranks' values, in some
order, give one of that sign. Only finite values go in, so NumPy never gives NaN, and a NaN is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.traffic.aggregation_format import LANE_COUNT, Operation
from weft.traffic.schedule_nodes import DataType
from weft.traffic.schedules import CollectiveSpec

Array = NDArray[np.generic]

_UFUNCS = {Operation.SUM: np.add, Operation.MAX: np.maximum, Operation.MIN: np.minimum}
# Half a step beyond float32's largest number: from there on rounding to nearest gives infinity (IEEE 754, 4.3.1).
_INFINITE_FROM = 2.0**128 - 2.0**103
_SAME_EVERYWHERE = ("allreduce", "allgather", "broadcast")


@dataclass(frozen=True)
class Verdict:
    """How the ranks' results compare with NumPy's.

    `wrong` counts elements, over all ranks, outside the bound; `largest_error` and `bound` are absolute, the bound
    being the one of the element with the largest error (an infinity that is right has none); `identical` says whether
    all ranks hold the same bits where the collective gives all the same.
    """

    wrong: int
    identical: bool
    largest_error: float
    bound: float

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong."""
        return self.wrong == 0 and self.identical


def result_elements(collective: str, spec: CollectiveSpec, rank: int) -> range:
    """Return which elements of a rank's data are its result: none on the other ranks of a reduce."""
    if collective == "reducescatter":
        return spec.chunk(rank)
    if collective == "reduce" and rank != spec.root:
        return range(0)
    return range(spec.element_count)


def verify(
    collective: str, algorithm: str, spec: CollectiveSpec, inputs: Sequence[Array], results: Sequence[Array]
) -> Verdict:
    """Compare every rank's result with what NumPy makes of the ranks' inputs.

    Integers, maxima, minima and what is only moved must agree bit for bit. A float32 sum must lie within the
    algorithm's bound: in the network block floating point's (docs/spec/aggregation.md), elsewhere that of n − 1
    roundings of partial sums in any order, (n − 1)·ε·Σ|x|. Where such a sum overflows, infinity is right, too:
    elsewhere than in the network already where the positive (or the negative) values alone exceed float32, as
    partial sums do then.

    Args:
        collective: what was done, by `algorithm`.
        spec: its parameters.
        inputs: every rank's data, `spec.element_count` elements each; of an all-gather, the rank's own chunk counts.
        results: every rank's `result_elements`.
    """
    reference = _Reference(collective, algorithm, spec, inputs)
    identical = collective not in _SAME_EVERYWHERE or all(
        result.tobytes() == results[0].tobytes() for result in results
    )
    wrong, largest_error, its_bound = 0, 0.0, 0.0
    for rank, result in enumerate(results):
        expected, bound = reference.of_rank(rank)
        errors = np.abs(result.astype(np.float64) - expected)
        errors[reference.is_right_infinity(rank, result)] = 0.0
        # A NaN is no number within any bound.
        wrong += int(np.count_nonzero(~(errors <= bound)))
        if errors.size:
            worst = int(np.argmax(np.nan_to_num(errors, nan=np.inf)))
            if not errors[worst] <= largest_error:
                largest_error, its_bound = (
                    float(errors[worst]),
                    float(np.broadcast_to(bound, errors.shape)[worst]),
                )
            elif rank == 0:
                its_bound = float(np.broadcast_to(bound, errors.shape)[worst])
    return Verdict(wrong, identical, largest_error, its_bound)


class _Reference:
    """What every rank should hold, as float64, which holds every int32 and float32, and how far off it may be."""

    def __init__(
        self, collective: str, algorithm: str, spec: CollectiveSpec, inputs: Sequence[Array]
    ) -> None:
        self.collective, self.spec, self.inputs = collective, spec, inputs
        self._reduced, self._bound = np.zeros(0), np.zeros(0)
        self._may_be_infinite: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
        if collective in ("allreduce", "reducescatter", "reduce"):
            self._reduced, self._bound = _reduction(algorithm, spec, inputs)
            if spec.operation is Operation.SUM and spec.dtype is DataType.FLOAT32:
                self._may_be_infinite = _overflows(algorithm, inputs, self._reduced, self._bound)

    def of_rank(self, rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a rank's expected result and the bound of its errors."""
        if self.collective in ("allreduce", "reducescatter", "reduce"):
            where = _slice(result_elements(self.collective, self.spec, rank))
            return self._reduced[where], self._bound[where]
        return self._moved(rank).astype(np.float64), np.zeros(())

    def is_right_infinity(self, rank: int, result: Array) -> NDArray[np.bool_]:
        """Return which elements of a rank's result are infinities as NumPy might have them."""
        if self._may_be_infinite is None:
            return np.zeros(result.shape, np.bool_)
        where = _slice(result_elements(self.collective, self.spec, rank))
        above, below = self._may_be_infinite
        values = result.astype(np.float64)
        return (np.isposinf(values) & above[where]) | (np.isneginf(values) & below[where])

    def _moved(self, rank: int) -> Array:
        match self.collective:
            case "broadcast":
                return self.inputs[self.spec.root]
            case "allgather":
                own = [each[_slice(self.spec.chunk(source))] for source, each in enumerate(self.inputs)]
                return np.concatenate(own)
            case "alltoall":
                return np.concatenate([each[_slice(self.spec.chunk(rank))] for each in self.inputs])
        raise ValueError(f"nothing is known of what {self.collective!r} gives")


def _slice(elements: range) -> slice:
    return slice(elements.start, elements.stop)


def _reduction(
    algorithm: str, spec: CollectiveSpec, inputs: Sequence[Array]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    stacked = np.stack(inputs)
    nothing = np.zeros(stacked.shape[1:])
    if spec.operation is not Operation.SUM or spec.dtype is DataType.INT32:
        # int32 sums wrap.
        reduced = _UFUNCS[spec.operation].reduce(stacked, axis=0, dtype=stacked.dtype)
        return np.asarray(reduced, dtype=np.float64), nothing
    exact = stacked.astype(np.float64).sum(axis=0)
    return exact, _block_bound(stacked) if algorithm == "in-network" else _rounding_bound(stacked)


def _overflows(
    algorithm: str, inputs: Sequence[Array], exact: NDArray[np.float64], bound: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which elements' sums may be +infinity, and which −infinity.

    In the network sums are exact until they are rounded; elsewhere a partial sum may be that of all positive values.
    """
    highest, lowest = exact, exact
    if algorithm != "in-network":
        stacked = np.stack(inputs).astype(np.float64)
        highest, lowest = np.maximum(stacked, 0.0).sum(axis=0), np.minimum(stacked, 0.0).sum(axis=0)
    return highest + bound >= _INFINITE_FROM, lowest - bound <= -_INFINITE_FROM


def _rounding_bound(stacked: Array) -> NDArray[np.float64]:
    ranks = stacked.shape[0]
    magnitude: NDArray[np.float64] = np.abs(stacked.astype(np.float64)).sum(axis=0)
    return np.asarray((ranks - 1) * float(np.finfo(np.float32).eps) * magnitude)


def _block_bound(stacked: Array) -> NDArray[np.float64]:
    """Return n·½·2^(e − 31 + b) per element plus one rounding to float32, e being the block's exponent.

    b and e as in docs/spec/aggregation.md, "Float32".
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
