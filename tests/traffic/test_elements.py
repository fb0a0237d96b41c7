"""Elements of every type: what hosts make of them, and what their lanes in the network stand for, against float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.engine import _core
from weft.results.verification import UFUNCS
from weft.traffic.aggregation_format import Operation, elements_per_lane
from weft.traffic.data_types import FLOAT_FORMATS, DataType, data_type_of, elements_of, numbers

NARROW = [DataType.FLOAT16, DataType.BFLOAT16]
INTEGERS = [DataType.INT32, DataType.INT16, DataType.INT8]


def bits_of(dtype):
    """All elements of a type of 16 bits but NaN's."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(dtype.storage)
    return bits[~np.isnan(numbers(bits, dtype))]


def same(one, other):
    """Equal numbers; any NaN equals any."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def rounded(values, dtype):
    """Round by the definition: the format's multiple that is nearest, ties to even, infinite beyond the largest."""
    form = FLOAT_FORMATS[dtype]
    exponents = np.maximum(np.frexp(values)[1] - 1, 1 - form.largest_exponent)
    quantum = np.ldexp(1.0, exponents - form.fraction_bits)
    nearest = np.round(values / quantum) * quantum
    return np.where(np.abs(values) >= form.infinite_from, np.copysign(np.inf, values), nearest)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("operation", [Operation.SUM, Operation.MAX, Operation.MIN])
def test_narrow_floats_combine_as_numbers_that_are_rounded_once(dtype, operation):
    ours = bits_of(dtype).copy()
    other = np.random.default_rng(1).permutation(bits_of(dtype))
    wide = [numbers(each, dtype).astype(np.float64) for each in (ours, other)]
    with np.errstate(invalid="ignore", over="ignore"):
        expected = rounded(UFUNCS[operation](*wide), dtype)
    _core.combine_elements(ours, other, dtype.value, operation.name.lower())
    assert np.all(same(numbers(ours, dtype).astype(np.float64), expected))


@pytest.mark.parametrize("dtype", NARROW)
def test_division_rounds_to_nearest(dtype):
    for divisor in (1, 3, 7, 1000):
        data = bits_of(dtype).copy()
        with np.errstate(invalid="ignore"):
            expected = rounded(numbers(data, dtype).astype(np.float64) / divisor, dtype)
        _core.divide_elements(data, dtype.value, divisor)
        assert np.all(same(numbers(data, dtype).astype(np.float64), expected))


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_bfloat16_is_the_nearest_of_its_numbers(values):
    wide = np.array(values, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = rounded(wide, DataType.BFLOAT16)
    got = numbers(elements_of(wide, DataType.BFLOAT16), DataType.BFLOAT16).astype(np.float64)
    assert np.all(same(got, expected))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", UFUNCS)
def test_integers_combine_exactly_and_wrap(dtype, operation):
    half = 2 ** (8 * dtype.element_bytes - 1)
    generator = np.random.default_rng(2)
    ours, other = (generator.integers(-half, half, 500).astype(dtype.storage) for _ in range(2))
    expected = UFUNCS[operation](ours, other, dtype=dtype.storage)
    _core.combine_elements(ours, other, dtype.value, operation.name.lower())
    np.testing.assert_array_equal(ours, expected)
    _core.divide_elements(ours, dtype.value, 3)
    np.testing.assert_array_equal(ours, np.trunc(expected / 3).astype(dtype.storage))


def test_bits_of_floats_are_not_combined():
    for operation in (Operation.AND, Operation.OR, Operation.XOR):
        with pytest.raises(ValueError, match="valid: sum, max, min; and, or, xor are of integers"):
            _core.combine_elements(bytearray(4), bytes(4), "float32", operation.name.lower())


@pytest.mark.parametrize("dtype", list(DataType))
def test_lanes_keep_elements_and_their_order(dtype):
    encoding = _core.LaneEncoding(dtype.value, "max", 4)
    assert encoding.elements_per_lane == 4 // dtype.element_bytes
    generator = np.random.default_rng(3)
    for count in (1, 2, 3, 64, 255):
        elements = generator.integers(0, 256, count * dtype.element_bytes, np.uint8).view(dtype.storage)
        lanes = encoding.encode(elements)
        back = np.zeros_like(elements)
        assert encoding.decode(lanes, back) is False
        np.testing.assert_array_equal(back.view(np.uint8), elements.view(np.uint8))
        # The parts of a lane, the first in its highest bits, are ordered as the elements.
        packed = lanes.astype(">i4").view(f">i{4 // encoding.elements_per_lane}")[:count]
        values = numbers(elements, dtype).astype(np.float64)
        known = ~np.isnan(values)
        order = np.argsort(packed[known], kind="stable")
        assert np.all(np.diff(values[known][order]) >= 0)


def integers_in(lanes, encoding, count):
    """The integers that lanes hold, the first in the highest bits."""
    return lanes.astype(">i4").view(f">i{4 // encoding.elements_per_lane}")[:count].astype(np.int64)


def lanes_of(integers, encoding):
    """The inverse; raises no error, but no integer may be beyond its type."""
    each = encoding.elements_per_lane
    assert np.all(np.abs(integers) < 1 << (32 // each - 1))
    padded = np.pad(integers, (0, -len(integers) % each))
    return padded.astype(f">i{4 // each}").view(">i4").astype(np.int32)


def magnitude_bits(dtype, ranks):
    """m of docs/spec/aggregation.md, "Sums of floats"."""
    headroom = math.ceil(math.log2(ranks if ranks <= 128 else ranks + 1))
    precision = FLOAT_FORMATS[dtype].fraction_bits + 1
    return (15 if headroom + precision <= 15 else 31) - headroom


@pytest.mark.parametrize(
    ("dtype", "ranks", "elements"),
    [
        (DataType.FLOAT32, 1, 1),
        (DataType.FLOAT16, 16, 2),
        (DataType.FLOAT16, 17, 1),
        (DataType.BFLOAT16, 128, 2),
        (DataType.BFLOAT16, 129, 1),
    ],
)
def test_sums_of_16_bit_floats_share_a_lane_while_their_significand_fits(dtype, ranks, elements):
    encoding = _core.LaneEncoding(dtype.value, "sum", ranks)
    assert encoding.elements_per_lane == elements
    assert elements_per_lane(dtype, Operation.AVERAGE, ranks) == elements


@pytest.mark.parametrize(("dtype", "ranks"), [(DataType.FLOAT16, 16), (DataType.BFLOAT16, 128)])
def test_packed_sums_are_those_of_rounded_multiples_in_float64(dtype, ranks):
    """To the bit; the block's largest elements are carried exactly, and the largest sum that there is fits."""
    form, m = FLOAT_FORMATS[dtype], magnitude_bits(dtype, ranks)
    inputs = [elements_of(np.random.default_rng(rank).standard_normal(63), dtype) for rank in range(ranks - 1)]
    inputs.append(elements_of(np.full(63, 1 - 2.0 ** -(form.fraction_bits + 2)), dtype))
    encoding = _core.LaneEncoding(dtype.value, "sum", ranks)
    exponent = max(encoding.exponent(each) for each in inputs)
    sums = sum(integers_in(encoding.encode(each, exponent), encoding, 63) for each in inputs)
    values = [numbers(each, dtype).astype(np.float64) for each in inputs]
    quantum = 2.0 ** (exponent - m)
    expected = sum(np.rint(each / quantum) for each in values) * quantum
    result = np.zeros_like(inputs[0])
    encoding.decode(lanes_of(sums, encoding), result, exponent)
    np.testing.assert_array_equal(result.view(np.uint16), elements_of(expected, dtype).view(np.uint16))
    for each in values:
        largest = np.abs(each) >= 2.0 ** (exponent - 1)
        np.testing.assert_array_equal(np.rint(each / quantum)[largest] * quantum, each[largest])
    most = elements_of(np.full(2, form.infinite_from * (1 - 2.0 ** -(form.fraction_bits + 2))), dtype)
    for each in (most, elements_of(-numbers(most, dtype).astype(np.float64), dtype)):
        exponent = encoding.exponent(each)
        lanes_of(ranks * integers_in(encoding.encode(each, exponent), encoding, 2), encoding)


def drawn_floats(dtype):
    """Numbers of a type, extremes among them: the smallest, the largest, zeros, one large beside tiny ones."""
    form = FLOAT_FORMATS[dtype]
    largest = form.infinite_from * (1 - 2.0 ** -(form.fraction_bits + 2))
    bits = st.integers(0, (1 << (8 * dtype.element_bytes)) - 1)
    whole = f"uint{8 * dtype.element_bytes}"
    finite = bits.map(lambda each: float(numbers(np.array([each], whole).view(dtype.storage), dtype)[0]))
    extremes = [0.0, -0.0, form.smallest_subnormal, -form.smallest_subnormal, largest, -largest, 1.0]
    return st.one_of(finite.filter(math.isfinite), st.sampled_from(extremes))


@given(st.sampled_from(list(FLOAT_FORMATS)), st.data(), st.integers(1, 1024), st.integers(1, 64))
@settings(max_examples=200, deadline=None)
def test_sums_in_the_network_are_within_the_stated_bound(dtype, data, ranks, count):
    """docs/spec/aggregation.md, "Sums of floats"; any order of additions, since integers add exactly."""
    row = st.lists(drawn_floats(dtype), min_size=count, max_size=count)
    distinct = data.draw(st.lists(row, min_size=1, max_size=3))
    inputs = [elements_of(np.array(each), dtype) for each in distinct]
    repeats = [(ranks - place + len(inputs) - 1) // len(inputs) for place in range(len(inputs))]
    encoding = _core.LaneEncoding(dtype.value, "sum", ranks)
    exponent = max(encoding.exponent(each) for each, times in zip(inputs, repeats, strict=True) if times)
    sums = sum(
        integers_in(encoding.encode(each, exponent), encoding, count) * times
        for each, times in zip(inputs, repeats, strict=True)
        if times
    )
    result = np.zeros_like(inputs[0])
    overflowed = encoding.decode(lanes_of(sums, encoding), result, exponent)
    got = numbers(result, dtype).astype(np.float64)
    assert overflowed == bool(np.any(np.isinf(got)))
    columns = zip(*(numbers(each, dtype).astype(float) for each in inputs), strict=True)
    exact = [math.fsum(value * times for value, times in zip(column, repeats, strict=True)) for column in columns]
    form, bound = FLOAT_FORMATS[dtype], ranks * 0.5 * 2.0 ** (exponent - magnitude_bits(dtype, ranks))
    for value, wanted in zip(got, exact, strict=True):
        if math.isinf(value):
            assert abs(wanted) + bound >= form.infinite_from
        else:
            rounding = max(abs(value) * form.epsilon / 2, form.smallest_subnormal / 2)
            assert abs(value - wanted) <= bound + rounding


def test_types_of_arrays():
    assert [data_type_of(np.dtype(each.storage)) for each in DataType] == list(DataType)
    assert data_type_of(np.dtype(np.float64)) is None


def test_a_number_between_two_floats_is_rounded_to_bfloat16_once():
    """As a float32 it would be halfway, which goes to even; it is above that."""
    wide = np.array([1 + 2**-8 + 2**-40, -1 - 2**-8 - 2**-40, 1 + 2**-8, 1 + 2**-8 - 2**-40, 1e39])
    assert elements_of(wide, DataType.BFLOAT16).tolist() == [0x3F81, 0xBF81, 0x3F80, 0x3F80, 0x7F80]


def test_floats_become_integers_towards_zero_and_modulo_their_range():
    assert elements_of(np.array([2.7, -2.7, 300.0]), DataType.INT8).tolist() == [2, -2, 44]
