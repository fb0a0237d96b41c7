"""Block floating point: the stated bound holds, nothing overflows, and ranks agree bit for bit."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.engine import _core

FLOAT_MAX = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-149

floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, SMALLEST, -SMALLEST, FLOAT_MAX, -FLOAT_MAX, 1.0, -1.0]),
)
blocks = st.lists(floats, min_size=1, max_size=64)


def log2_ceiling(rank_count: int) -> int:
    return (rank_count - 1).bit_length()


def all_reduce(inputs: np.ndarray, rank_count: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Result, agreed exponent and exact integer sums, of rows that are the ranks' blocks."""
    exponent = max(_core.block_exponent(row) for row in inputs)
    integers = [_core.quantise_block(row, exponent, rank_count) for row in inputs]
    sums = np.sum(np.array(integers, dtype=np.int64), axis=0)
    assert np.all(np.abs(sums) < 2**31)
    return _core.dequantise_block(sums.astype(np.int32), exponent, rank_count), exponent, sums


@given(blocks)
def test_exponent_is_frexps_of_the_largest_magnitude(block):
    array = np.array(block, dtype=np.float32)
    largest = float(np.max(np.abs(array)))
    expected = math.frexp(largest)[1] if largest else -149
    assert _core.block_exponent(array) == expected
    assert largest < 2.0**expected


@given(st.data(), st.integers(1, 128), st.integers(1, 64))
@settings(max_examples=200, deadline=None)
def test_sum_is_within_the_stated_bound_and_never_overflows(data, rank_count, count):
    distinct = data.draw(st.lists(st.lists(floats, min_size=count, max_size=count), min_size=1, max_size=4))
    inputs = np.array([distinct[rank % len(distinct)] for rank in range(rank_count)], dtype=np.float32)
    result, exponent, _ = all_reduce(inputs, rank_count)
    exact = [math.fsum(column) for column in inputs.T.astype(np.float64)]
    bound = rank_count * 0.5 * 2.0 ** (exponent - 31 + log2_ceiling(rank_count))
    for got, wanted in zip(result.tolist(), exact, strict=True):
        if math.isinf(got):
            assert abs(wanted) + bound > FLOAT_MAX  # the sum itself leaves float32
        else:
            assert abs(got - wanted) <= bound + abs(got) * 2.0**-24 + SMALLEST / 2


@pytest.mark.parametrize("rank_count", [1, 2, 3, 8, 127, 128, 129, 256, 1024])
@pytest.mark.parametrize("value", [FLOAT_MAX, -FLOAT_MAX, np.nextafter(np.float32(1), np.float32(0)), SMALLEST])
def test_the_extreme_of_all_ranks_does_not_overflow_int32(rank_count, value):
    inputs = np.full((rank_count, 64), value, dtype=np.float32)
    result, _, sums = all_reduce(inputs, rank_count)
    assert np.all(np.sign(sums) == np.sign(value))
    exact = rank_count * float(np.float32(value))
    if abs(exact) <= FLOAT_MAX:
        assert result[0] == pytest.approx(exact, rel=2.0**-21)


@given(blocks)
@example([SMALLEST, 0.0])
def test_a_single_rank_keeps_31_bits(block):
    array = np.array(block, dtype=np.float32)
    result, exponent, _ = all_reduce(array[None, :], 1)
    assert np.all(np.abs(result.astype(np.float64) - array) <= 2.0 ** (exponent - 32))


def test_zero_blocks_stay_zero_beside_others():
    inputs = np.zeros((8, 64), dtype=np.float32)
    assert not all_reduce(inputs, 8)[0].any()
    inputs[3] = 1.5
    assert np.all(all_reduce(inputs, 8)[0] == 1.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_by_name(value):
    block = np.ones(64, dtype=np.float32)
    block[17] = value
    with pytest.raises(ValueError, match=f"element 17 is -?{abs(value)}"):
        _core.block_exponent(block)


@pytest.mark.parametrize("rank_count", [0, 2**30 + 1])
def test_senseless_rank_counts_are_refused(rank_count):
    with pytest.raises(ValueError, match=f"for {rank_count} ranks"):
        _core.quantise_block(np.ones(1, dtype=np.float32), 0, rank_count)
