"""Is the result of a collective right? NumPy says.

Sums of floats overflow as NumPy's do: an infinity is right where additions of the ranks' values in their type, in some
order, give one of that sign. Only finite values go in, so NumPy never gives NaN, and a NaN is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.traffic.aggregation_format import LANE_COUNT, Operation
from weft.traffic.collectives import Algorithm, Array, Collective
from weft.traffic.data_types import FLOAT_FORMATS, FloatFormat, numbers
from weft.traffic.schedules import CollectiveSpec

UFUNCS = {
    Operation.SUM: np.add,
    Operation.MAX: np.maximum,
    Operation.MIN: np.minimum,
    Operation.AND: np.bitwise_and,
    Operation.OR: np.bitwise_or,
    Operation.XOR: np.bitwise_xor,
}
"""NumPy's function for each operation on two elements; an average is a sum, divided in the end."""


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


def verify(
    collective: Collective,
    algorithm: Algorithm,
    spec: CollectiveSpec,
    inputs: Sequence[Array],
    results: Sequence[Array],
) -> Verdict:
    """Compare every rank's result with NumPy's on the ranks' inputs.

    Integers, maxima, minima and data that are only moved must agree bit for bit. A sum of floats must lie within the
    algorithm's bound: in the network block floating point's (docs/spec/aggregation.md), elsewhere the bound of n − 1
    roundings to nearest of partial sums in any order, ((1 + u)^(n − 1) − 1)·Σ|x| with u = 2^(−p), half the distance
    from 1 to the next number (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 4.2). An
    average's bound is its sum's divided by n, and one rounding. Where a sum overflows, infinity is right, too:
    elsewhere than in the network already where the positive (or the negative) values alone exceed the type, as partial
    sums do then.

    Args:
        collective: the collective that ran, by `algorithm`.
        spec: its parameters.
        inputs: every rank's data, `spec.element_count` elements each; `Collective.input_part` of them counts.
        results: every rank's `Collective.result_part`.
    """
    reference = _Reference(collective, algorithm, spec, inputs)
    identical = not collective.is_same_on_all_ranks or all(_same_bits(result, results[0]) for result in results)
    wrong, largest_error, its_bound = 0, 0.0, 0.0
    judged: _Judgement | None = None
    for rank, result in enumerate(results):
        shares = reference.combine(rank)
        # The same bits are as right on every rank that should hold the same.
        if judged is None or not (shares and identical and collective.is_same_on_all_ranks):
            judged = _judge(reference, rank, result)
        wrong += judged.wrong
        if judged.worst_error is not None:
            if not judged.worst_error <= largest_error:
                largest_error, its_bound = judged.worst_error, judged.worst_bound
            elif rank == 0:
                its_bound = judged.worst_bound
    return Verdict(wrong, identical, largest_error, its_bound)


@dataclass(frozen=True)
class _Judgement:
    """One rank's wrong elements, and the largest error (None without elements) with its bound."""

    wrong: int
    worst_error: float | None
    worst_bound: float


def _judge(reference: _Reference, rank: int, result: Array) -> _Judgement:
    expected, bound = reference.of_rank(rank)
    errors = np.abs(numbers(result, reference.spec.dtype).astype(np.float64) - expected)
    errors[reference.is_right_infinity(rank, result)] = 0.0
    # A NaN is no number within any bound.
    wrong = int(np.count_nonzero(~(errors <= bound)))
    if not errors.size:
        return _Judgement(wrong, None, 0.0)
    worst = int(np.argmax(np.nan_to_num(errors, nan=np.inf)))
    return _Judgement(wrong, float(errors[worst]), float(np.broadcast_to(bound, errors.shape)[worst]))


def _same_bits(one: Array, other: Array) -> bool:
    return np.array_equal(one.view(np.uint8), other.view(np.uint8))


class _Reference:
    """The expected elements of every rank, as float64, which holds every element exactly, and their error bounds."""

    def __init__(
        self, collective: Collective, algorithm: Algorithm, spec: CollectiveSpec, inputs: Sequence[Array]
    ) -> None:
        self.collective, self.algorithm, self.spec, self.inputs = collective, algorithm, spec, inputs
        self._terms: Sequence[Array] | None = None
        self._part = slice(0, 0)
        self._expected, self._bound = np.zeros(0), np.zeros(0)
        self._may_be_infinite: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None

    def of_rank(self, rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a rank's expected result and the bound of its errors; after `combine`."""
        where = self._result_part(rank)
        return self._expected[where], self._bound[where] if self._bound.ndim else self._bound

    def is_right_infinity(self, rank: int, result: Array) -> NDArray[np.bool_]:
        """Return which elements of a rank's result are infinities as NumPy might have them; after `combine`."""
        if self._may_be_infinite is None:
            return np.zeros(result.shape, np.bool_)
        where = self._result_part(rank)
        above, below = self._may_be_infinite
        values = numbers(result, self.spec.dtype).astype(np.float64)
        return (np.isposinf(values) & above[where]) | (np.isneginf(values) & below[where])

    def _result_part(self, rank: int) -> slice:
        part = self.collective.result_part(self.spec, rank)
        return slice(part.start, part.stop)

    def combine(self, rank: int) -> bool:
        """Work out what a rank should hold; returns whether the rank asked for before should hold the same."""
        terms, part = self.collective.terms(self.spec, self.inputs, rank), self._result_part(rank)
        same_part, self._part = part == self._part, part
        # Ranks that share their terms share what becomes of them.
        if terms is self._terms:
            return same_part
        self._terms, spec = terms, self.spec
        terms = [numbers(term, spec.dtype) for term in terms]
        if not self.collective.reduces:
            (moved,) = terms
            self._expected, self._bound = moved.astype(np.float64), np.zeros(())
            return False
        in_network = self.algorithm.in_network and not self.algorithm.by_rail
        # Where each rank has a chunk of its own, its blocks begin with it.
        chunks = range(spec.rank_count) if self.collective.is_parted else ()
        parts = [spec.chunk(rank) for rank in chunks] or [range(spec.element_count)]
        self._expected, self._bound = _reduction(spec, terms, parts if in_network else None)
        if self.algorithm.by_rail and self._bound.any():
            self._bound = self._bound + _sums_block_bound(terms, spec.host_count, FLOAT_FORMATS[spec.dtype])
        if spec.operation.combined_by is Operation.SUM and spec.dtype.is_float:
            infinite_from = FLOAT_FORMATS[spec.dtype].infinite_from
            self._may_be_infinite = _overflows(terms, self._expected, self._bound, in_network, infinite_from)
        if spec.operation is Operation.AVERAGE:
            self._expected, self._bound = _average(spec, self._expected, self._bound)
        return False


def _accumulated(ufunc: np.ufunc, values: Iterator[Array]) -> NDArray[Any]:
    """Combine arrays one by one, in the first one's type, without having all at once."""
    total = next(values).copy()
    for each in values:
        ufunc(total, each, out=total)
    return total


def _summed(terms: Iterable[Array], part_of: Callable[[Array], Array] = np.positive) -> NDArray[np.float64]:
    """Return the sums of what is taken of each term, as float64."""
    return _accumulated(np.add, (part_of(term).astype(np.float64) for term in terms))


def _reduction(
    spec: CollectiveSpec, terms: Sequence[Array], parts_in_network: Sequence[range] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    operation = spec.operation.combined_by
    if operation is not Operation.SUM or not spec.dtype.is_float:
        # Sums of integers wrap.
        reduced = _accumulated(UFUNCS[operation], iter(terms))
        return reduced.astype(np.float64), np.zeros(reduced.shape)
    exact, float_format = _summed(terms), FLOAT_FORMATS[spec.dtype]
    if parts_in_network is None:
        return exact, _rounding_bound(terms, float_format)
    return exact, _block_bound(terms, exact, parts_in_network, float_format)


def _average(
    spec: CollectiveSpec, sums: NDArray[np.float64], bound: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean = sums / spec.rank_count
    if not spec.dtype.is_float:
        return np.trunc(mean), bound
    of_sum = bound / spec.rank_count
    return mean, of_sum + _one_rounding(np.abs(mean) + of_sum, FLOAT_FORMATS[spec.dtype])


def _overflows(
    terms: Sequence[Array],
    exact: NDArray[np.float64],
    bound: NDArray[np.float64],
    in_network: bool,
    infinite_from: float,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which elements' sums may be +infinity, and which −infinity.

    In the network sums are exact until they are rounded; elsewhere a partial sum may cover all positive values alone.
    """
    highest, lowest = exact, exact
    if not in_network:
        highest = _summed(terms, lambda term: np.maximum(term, term.dtype.type(0.0)))
        lowest = _summed(terms, lambda term: np.minimum(term, term.dtype.type(0.0)))
    return highest + bound >= infinite_from, lowest - bound <= -infinite_from


def _rounding_bound(terms: Sequence[Array], float_format: FloatFormat) -> NDArray[np.float64]:
    roundings = math.expm1((len(terms) - 1) * math.log1p(float_format.epsilon / 2))
    return roundings * _summed(terms, np.abs)


def _one_rounding(largest: NDArray[np.float64], float_format: FloatFormat) -> NDArray[np.float64]:
    """Return by how much rounding to nearest changes numbers of at most these sizes."""
    # Below the normal numbers, rounding is by an absolute amount.
    return np.maximum(largest * (float_format.epsilon / 2), float_format.smallest_subnormal / 2)


def _block_bound(
    terms: Sequence[Array], exact: NDArray[np.float64], parts: Sequence[range], float_format: FloatFormat
) -> NDArray[np.float64]:
    """Return n·½·2^(e − m) per element plus one rounding of such a sum to the type, e being the block's exponent.

    m and e as in docs/spec/aggregation.md, "Sums of floats". Each of `parts`, which cover all elements, begins a block.
    """
    largest = _accumulated(np.maximum, (np.abs(term) for term in terms))
    of_parts = (largest[part.start : part.stop] for part in parts)
    errors = [_block_errors(_largest_of_blocks(each), len(terms), each.size, float_format) for each in of_parts]
    carried = np.concatenate(errors)
    return np.asarray(carried + _one_rounding(np.abs(exact) + carried, float_format), dtype=np.float64)


def _sums_block_bound(terms: Sequence[Array], workers: int, float_format: FloatFormat) -> NDArray[np.float64]:
    """Return a bound of the same kind for workers' sums of some of the terms, in blocks that begin anywhere.

    Such a sum is at most the sum of all absolute values, and a block lies within three that begin at multiples.
    """
    sums = _summed(terms, np.abs)
    largest = np.pad(_largest_of_blocks(sums), 1)
    widest = np.maximum(np.maximum(largest[:-2], largest[2:]), largest[1:-1])
    return _block_errors(widest, workers, sums.size, float_format)


def _largest_of_blocks(values: Array) -> NDArray[np.float64]:
    padded = np.zeros(-(-values.size // LANE_COUNT) * LANE_COUNT)
    padded[: values.size] = values
    return np.asarray(padded.reshape(-1, LANE_COUNT).max(axis=1), dtype=np.float64)


def _block_errors(
    largest: NDArray[np.float64], ranks: int, elements: int, float_format: FloatFormat
) -> NDArray[np.float64]:
    exponents = np.frexp(largest)[1]
    headroom_bits = math.ceil(math.log2(ranks if ranks <= 128 else ranks + 1))
    is_narrow = float_format.fraction_bits + 1 <= 15 - headroom_bits
    magnitude_bits = (15 if is_narrow else 31) - headroom_bits
    quantum = np.where(largest > 0, np.ldexp(1.0, exponents - magnitude_bits), 0.0)
    return np.asarray(np.repeat(ranks * 0.5 * quantum, LANE_COUNT)[:elements], dtype=np.float64)
