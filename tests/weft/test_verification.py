import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.engine._core import block_exponent, dequantise_block, quantise_block
from weft.results.verification import Verdict
from weft.results.verification import verify as verify_typed
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.schedules import CollectiveSpec


def inputs_of(dtype, ranks=4, elements=200, seed=0):
    generator = np.random.default_rng(seed)
    if dtype == np.int32:
        return [generator.integers(-(2**31), 2**31, elements, dtype=np.int64).astype(np.int32) for _ in range(ranks)]
    return [generator.standard_normal(elements).astype(np.float32) for _ in range(ranks)]


def spec_of(inputs, operation=Operation.SUM, root=0):
    dtype = DataType(inputs[0].dtype.name)
    return CollectiveSpec(len(inputs), inputs[0].size, dtype, operation, (1,), root=root)


def verify(collective, algorithm, spec, inputs, results) -> Verdict:
    found = COLLECTIVE_KINDS[collective]
    return verify_typed(found, found.algorithm(algorithm), spec, inputs, results)


def verify_sum(inputs, results, algorithm):
    return verify("allreduce", algorithm, spec_of(inputs), inputs, results)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("collective", sorted(set(COLLECTIVE_KINDS) - {"alltoallv", "moe_dispatch"}))
def test_a_wrong_element_of_any_collective_is_found(collective, dtype):
    inputs = inputs_of(dtype, ranks=4, elements=8)
    spec = spec_of(inputs, root=2)
    chunks = [slice(2 * rank, 2 * rank + 2) for rank in range(4)]
    total = np.add.reduce(inputs, dtype=dtype)
    joined = np.concatenate([each[chunk] for each, chunk in zip(inputs, chunks, strict=True)])
    right = {
        "allreduce": [total] * 4,
        "reducescatter": [total[chunk] for chunk in chunks],
        "allgather": [joined] * 4,
        "alltoall": [np.concatenate([each[chunk] for each in inputs]) for chunk in chunks],
        "broadcast": [inputs[2]] * 4,
        "barrier": inputs,
        "gather": [total[:0], total[:0], joined, total[:0]],
        "scatter": [inputs[2][chunk] for chunk in chunks],
        "reduce": [total[:0], total[:0], total, total[:0]],
    }[collective]
    assert [len(COLLECTIVE_KINDS[collective].result_part(spec, rank)) for rank in range(4)] == [
        len(each) for each in right
    ]
    algorithm = COLLECTIVE_KINDS[collective].algorithms[0].name
    assert verify(collective, algorithm, spec, inputs, right).ok
    wrong = [each.copy() for each in right]
    wrong[2][1] += 1
    verdict = verify(collective, algorithm, spec, inputs, wrong)
    assert verdict.wrong == 1
    assert verdict.identical is (collective in ("reducescatter", "alltoall", "reduce", "barrier", "gather", "scatter"))
    assert verdict.largest_error == pytest.approx(1)


@pytest.mark.parametrize(("operation", "of_numpy"), [(Operation.MAX, np.max), (Operation.MIN, np.min)])
def test_maxima_and_minima_are_exact(operation, of_numpy):
    inputs = inputs_of(np.float32)
    result = of_numpy(inputs, axis=0)
    assert verify("allreduce", "in-network", spec_of(inputs, operation), inputs, [result] * 4).ok
    result[0] = np.nextafter(result[0], np.float32(np.inf))
    assert verify("allreduce", "in-network", spec_of(inputs, operation), inputs, [result] * 4).wrong == 4


def test_int32_sums_wrap_and_are_exact():
    inputs = inputs_of(np.int32)
    total = np.zeros_like(inputs[0])
    with np.errstate(over="ignore"):
        for each in inputs:
            total = total + each
    verdict = verify_sum(inputs, [total.copy() for _ in inputs], "ring")
    assert verdict.ok
    wrong = total.copy()
    wrong[7] ^= 1
    verdict = verify_sum(inputs, [total, wrong, total, total], "ring")
    assert (verdict.wrong, verdict.identical, verdict.ok) == (1, False, False)


@given(st.integers(0, 2**32 - 1), st.permutations(range(4)))
def test_any_order_of_float32_additions_is_within_the_rings_bound(seed, order):
    inputs = inputs_of(np.float32, seed=seed)
    total = inputs[order[0]].copy()
    for index in order[1:]:
        total = total + inputs[index]
    assert verify_sum(inputs, [total] * 4, "ring").ok


@given(st.integers(0, 2**32 - 1))
def test_a_block_floating_point_sum_is_within_the_networks_bound_and_a_quantum_off_is_not(seed):
    inputs = inputs_of(np.float32, elements=64, seed=seed)
    exponent = int(np.frexp(np.max(np.abs(inputs)))[1])
    scale = np.ldexp(1.0, 31 - 2 - exponent)
    integers = sum(np.rint(each.astype(np.float64) * scale) for each in inputs)
    result = (integers / scale).astype(np.float32)
    assert verify_sum(inputs, [result] * 4, "in-network").ok
    off = result + np.float32(4 * 2.0 ** (exponent - 22))
    assert verify_sum(inputs, [off] * 4, "in-network").wrong > 0


def test_not_a_number_is_wrong():
    inputs = inputs_of(np.float32)
    result = np.sum(inputs, axis=0)
    result[3] = np.nan
    assert verify_sum(inputs, [result] * 4, "ring").wrong == 4


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
def test_zeros_reduce_to_zeros(algorithm):
    inputs = [np.zeros(100, np.float32)] * 3
    assert verify_sum(inputs, [np.zeros(100, np.float32)] * 3, algorithm).ok
    assert not verify_sum(inputs, [np.full(100, 1e-30, np.float32)] * 3, algorithm).ok


def test_a_wrong_int32_sum_says_how_wrong():
    inputs = inputs_of(np.int32, ranks=2, elements=3)
    result = (inputs[0].astype(np.int64) + inputs[1]).astype(np.int32)
    result[1] ^= 0x100
    verdict = verify_sum(inputs, [result, result], "ring")
    assert (verdict.wrong, verdict.identical, verdict.largest_error) == (2, True, 256.0)


@pytest.mark.parametrize(("ranks", "magnitude"), [(2, 1.0), (129, 1.0), (256, 1.0), (2, 2.0**-145), (2, 0.0)])
def test_what_the_hosts_compute_is_within_the_networks_bound(ranks, magnitude):
    """Quantised, added and dequantised by the hosts' own code, for group sizes and magnitudes at its edges."""
    inputs = [(each * np.float32(magnitude)).astype(np.float32) for each in inputs_of(np.float32, ranks, 64)]
    exponent = max(block_exponent(each) for each in inputs)
    sums = sum(quantise_block(each, exponent, ranks).astype(np.int64) for each in inputs)
    result = dequantise_block(sums.astype(np.int32), exponent, ranks)
    assert verify_sum(inputs, [result] * ranks, "in-network").ok


LARGEST = float(np.finfo(np.float32).max)


def columns(*values):
    """Return the ranks' inputs from each element's values over all ranks."""
    return [np.array(rank, np.float32) for rank in zip(*values, strict=True)]


def verdicts_of(inputs, result, algorithm):
    return verify_sum(inputs, [np.array(result, np.float32)] * len(inputs), algorithm)


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
def test_sums_beyond_float32_are_infinite_as_numpy_s_are(algorithm):
    inputs = columns((3e38, 3e38), (-3e38, -2e38), (1.0, 2.0), (LARGEST, 2.0**103))
    with np.errstate(over="ignore"):
        of_numpy = np.add.reduce(inputs, dtype=np.float32)
    assert np.isinf(of_numpy).tolist() == [True, True, False, True]
    verdict = verdicts_of(inputs, of_numpy, algorithm)
    assert verdict.ok
    assert verdict.largest_error == 0.0
    for wrong in (
        [-np.inf, -np.inf, 3.0, np.inf],
        [np.inf, np.inf, 3.0, np.inf],
        [np.inf, -np.inf, np.inf, np.inf],
    ):
        assert verdicts_of(inputs, wrong, algorithm).wrong == 2
    for wrong in ([LARGEST, -np.inf, 3.0, np.inf], [np.nan, -np.inf, 3.0, np.inf]):
        assert verdicts_of(inputs, wrong, algorithm).wrong == 2


def test_partial_sums_overflow_on_hosts_but_not_in_the_network():
    """3e38 + 3e38 − 3e38: in this order NumPy says infinity, in another 3e38, as block floating point always does."""
    inputs = columns((3e38, 3e38, -3e38))
    with np.errstate(over="ignore"):
        assert np.isposinf(np.add.reduce(inputs, dtype=np.float32)).all()
    assert verdicts_of(inputs, [np.inf], "ring").ok
    assert verdicts_of(inputs, [3e38], "ring").ok
    assert verdicts_of(inputs, [3e38], "in-network").ok
    assert verdicts_of(inputs, [np.inf], "in-network").wrong == 3
    assert verdicts_of(inputs, [-np.inf], "ring").wrong == 3


def test_what_block_floating_point_makes_of_sums_beyond_float32_is_right():
    inputs = [np.full(64, value, np.float32) for value in (3e38, 2e38, 1e38)]
    exponent = max(block_exponent(each) for each in inputs)
    total = sum(np.asarray(quantise_block(each, exponent, 3), np.int64) for each in inputs)
    result = np.asarray(dequantise_block(total.astype(np.int32), exponent, 3))
    assert np.isposinf(result).all()
    assert verify_sum(inputs, [result] * 3, "in-network").ok


@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_bound_is_that_of_rounding_to_nearest(algorithm: str, dtype: str) -> None:
    """One rounding errs by at most half a step: the second nearest number is wrong, though within a whole step.

    docs/spec/aggregation.md, "Sums of floats".
    """
    kind = np.dtype(dtype)
    step = float(np.spacing(kind.type(1)))
    inputs = [np.array([1.0], kind), np.array([0.75 * step], kind)]
    nearest = np.array([1 + step], kind)
    assert verify_sum(inputs, [nearest] * 2, algorithm).ok
    verdict = verify_sum(inputs, [np.array([1.0], kind)] * 2, algorithm)
    assert verdict.wrong == 2
    assert verdict.largest_error == 0.75 * step
    assert verdict.bound < 0.75 * step
