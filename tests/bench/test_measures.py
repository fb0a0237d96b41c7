"""Figures of trials from numbers: fairness, imbalance, thresholds, convergence, slopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.bench.latencies import HEADINGS, latency_of
from weft.bench.measures import coefficient_of_variation, max_mean_ratio
from weft.bench.model import Health
from weft.bench.soaking import ProcessSample
from weft.bench.training.convergence import convergence_of
from weft.bench.training.ecn import PMAX, Point, expected_share, threshold_of
from weft.bench.training.leaks import slope_bytes_per_hour
from weft.bench.training.synthetic_jct import Iteration
from weft.quantities.fairness import jain_index

LOADS = st.lists(st.floats(0.0, 1e12), min_size=1, max_size=16)


@given(LOADS)
def test_jain_and_max_mean_ratio_are_within_their_bounds(loads: list[float]) -> None:
    assert 1 / len(loads) * 0.999 <= jain_index(loads) <= 1.001
    assert 0.999 <= max_mean_ratio(loads) <= len(loads) * 1.001


def test_jain_and_max_mean_ratio_of_known_loads() -> None:
    assert jain_index([1.0, 1.0, 1.0, 1.0]) == 1.0
    assert jain_index([1.0, 0.0, 0.0, 0.0]) == 0.25
    assert max_mean_ratio([3.0, 1.0]) == 1.5


def test_a_single_value_does_not_vary() -> None:
    assert coefficient_of_variation([3.0]) is None
    assert coefficient_of_variation([2.0, 2.0]) == 0.0
    assert coefficient_of_variation([1.0, 3.0]) == pytest.approx(2**0.5 / 2)


@given(st.floats(0.05, 1.0), st.integers(10_000, 10_000_000))
def test_a_threshold_is_where_a_line_through_the_marks_begins(counted: float, threshold: int) -> None:
    depths = [0.8 * threshold, 1.2 * threshold, 1.6 * threshold]
    points = [Point(depth, counted * expected_share(depth, threshold), 1000) for depth in depths]
    assert threshold_of(points) == pytest.approx(threshold, rel=1e-6)
    assert threshold_of(points[:2]) is None


def test_the_configured_probability_has_two_steps() -> None:
    assert expected_share(99, 100) == 0
    assert expected_share(200, 100) == PMAX
    assert expected_share(201, 100) == 1


@dataclass
class Flows:
    """A trial's flows; no more of a trial is read."""

    flows: dict[str, Any]


def flows_at(rates: list[float], duration_ps: int, message_bytes: int) -> Flows:
    """Return flows of messages one behind the other, at rates in bytes per picosecond, from the onset on."""
    rows = [
        (source, duration_ps, round((number + 1) * message_bytes / rate))
        for source, rate in enumerate(rates)
        for number in range(int(1.2 * duration_ps * rate / message_bytes) + 1)
    ]
    source, start, completion = map(np.array, zip(*rows, strict=True))
    sizes = np.full(len(rows), message_bytes)
    return Flows({"source": source, "start_ps": start, "completion_ps": completion, "size_bytes": sizes})


def test_flows_at_their_fair_share_have_converged_and_others_have_not() -> None:
    duration_ps = 10**9
    fair = convergence_of(flows_at([0.01, 0.0104], duration_ps, 10_000), 1, duration_ps)  # type: ignore[arg-type]
    assert fair.time_ps == 0
    assert fair.fairness > 0.99
    unfair = convergence_of(flows_at([0.01, 0.02], duration_ps, 10_000), 1, duration_ps)  # type: ignore[arg-type]
    assert unfair.time_ps is None
    assert unfair.fairness == pytest.approx(0.9, rel=0.01)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50))
def test_a_latencys_row_is_in_order(times: list[int]) -> None:
    row = latency_of([np.array(times, np.int64)]).row
    assert len(row) == len(HEADINGS)
    least, mean, *percentiles, largest = row
    assert least <= mean <= largest
    assert percentiles == sorted(percentiles)


def test_a_leak_is_a_slope_after_the_warm_up() -> None:
    samples = [
        ProcessSample(float(at), 1, "switch", 50_000_000 if at < 20 else 100_000_000 + 500 * at, 5, 0.0)
        for at in range(101)
    ]
    assert slope_bytes_per_hour(samples, 100.0) == pytest.approx(500 * 3600, rel=1e-6)


def test_the_roofline_is_the_drafts() -> None:
    iteration = Iteration(10_000_000_000, 10**9, 8)
    # 10 ms, and 1 GB x 2 x 7/8 at 400 Gb/s: 35 ms.
    assert iteration.roofline_ps(400_000_000_000) == pytest.approx(45e9)


def test_health_of_several_trials_is_their_sum_and_their_largest_queue() -> None:
    one, other = Health(packets=10, dropped_packets=1, largest_queue_bytes=5), Health(packets=5, largest_queue_bytes=9)
    both = one.together_with(other)
    assert (both.packets, both.dropped_packets, both.largest_queue_bytes) == (15, 1, 9)
    assert not both.is_clean
    assert other.is_clean
