"""Statistics of repeated runs, compared with NumPy, with printed tables of t, and with what an interval means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.sweeps.statistics import statistics_of, t_quantile

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2: upper critical values for a probability of 0.975.
PRINTED = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 19: 2.093, 30: 2.042, 31: 2.040,
           60: 2.000, 100: 1.984}  # fmt: skip


@pytest.mark.parametrize(("freedom", "expected"), PRINTED.items())
def test_quantiles_are_those_of_printed_tables(freedom, expected):
    assert t_quantile(freedom) == pytest.approx(expected, abs=0.0005)


def test_quantiles_come_down_to_the_normal_distribution_s():
    found = [t_quantile(freedom) for freedom in range(1, 200)]
    assert found == sorted(found, reverse=True)
    assert t_quantile(20_000) == pytest.approx(1.95996, abs=0.0002)


@given(st.lists(st.floats(-1e12, 1e12), min_size=2, max_size=30))
def test_they_are_numpy_s(values):
    found = statistics_of(values)
    scale = max(map(abs, values)) + 1e-300
    assert found.mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-12 * scale)
    assert found.standard_deviation == pytest.approx(np.std(values, ddof=1), rel=1e-6, abs=1e-9 * scale)
    assert (found.minimum, found.maximum, found.count) == (min(values), max(values), len(values))
    assert found.low <= found.mean <= found.high
    assert statistics_of(values[::-1]) == found


def test_figures_by_hand():
    # Mean 5, deviations -3, -1, 1, 3: a variance of 20/3; t of 3 degrees of freedom is 3.182.
    found = statistics_of([2, 4, 6, 8])
    assert found.mean == 5
    assert found.standard_deviation == pytest.approx((20 / 3) ** 0.5)
    assert found.half_width == pytest.approx(3.182 * (20 / 3) ** 0.5 / 2, rel=2e-4)


def test_equal_values_have_no_spread_and_one_value_has_none_to_tell():
    equal = statistics_of([0.1] * 7)
    assert (equal.mean, equal.standard_deviation, equal.half_width) == (0.1, 0, 0)
    alone = statistics_of([3])
    assert (alone.mean, alone.standard_deviation, alone.low, alone.high) == (3, None, None, None)


@pytest.mark.parametrize("count", [2, 3, 5, 20])
def test_19_of_20_intervals_have_the_true_mean(count):
    """The meaning of a 95 % interval; 1.96 in place of t would give 70 % for two runs."""
    samples = np.random.default_rng(7).normal(40.0, 3.0, (4000, count))
    intervals = [statistics_of(sample) for sample in samples.tolist()]
    share = np.mean([each.low <= 40.0 <= each.high for each in intervals])
    # Four standard deviations of the share of 4,000 draws.
    assert share == pytest.approx(0.95, abs=4 * (0.95 * 0.05 / 4000) ** 0.5)
