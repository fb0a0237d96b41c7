"""Published shapes of training, a small point of each: what the papers found holds there, too."""

from __future__ import annotations

import bench_training_shapes as shapes
import pytest
from curves import svg_of


def test_exposed_data_parallel_communication_grows_as_a_ring_does() -> None:
    model = shapes.REPLICA.model_copy(update={"layers": 2, "hidden": 1024, "feed_forward": 4096})
    two, four = shapes.data_points((2, 4), model)
    assert four.exposed_ms > two.exposed_ms
    # What is hidden does not depend on the degree; the ring's latency does, by some microseconds.
    assert four.over_closed_form_ms == pytest.approx(two.over_closed_form_ms, rel=0.02)


def test_a_sharded_step_exposes_more_on_more_hosts_and_keeps_its_throughput() -> None:
    model = shapes.SHARDED.model_copy(update={"layers": 4})
    one, two = shapes.sharded_points((8, 16), model)
    assert 0 < one.exposed_ms < two.exposed_ms
    assert two.tflops == pytest.approx(one.tflops, rel=0.03)


def test_interleaving_gains_most_at_small_batches_and_what_bubbles_cost() -> None:
    small, large = shapes.interleaved_points((4, 12), pipeline=4, layers=8)
    assert small.gain > large.gain > 1
    # Eight layers have little to compute beside what both schedules do once: optimizer, the embedding's all-reduce.
    assert small.gain == pytest.approx(small.bound, rel=0.04)
    assert large.gain == pytest.approx(large.bound, rel=0.01)


def test_tensor_parallelism_is_best_within_a_host() -> None:
    within, whole, across = shapes.tensor_points((4, 8, 16), ranks=16, batch=16, layers=4)
    assert whole.tflops > within.tflops
    assert whole.tflops > across.tflops
    assert within.bubble_ms > whole.bubble_ms > across.bubble_ms
    assert across.exposed_tensor_ms > 2 * whole.exposed_tensor_ms


def test_a_limit_of_hosts_divides_what_crosses_the_network() -> None:
    points = list(shapes.experts_points((0, 2, 1), ranks=16, tokens=128, hidden=1024))
    direct, both, one = points
    # Half of the hosts are others; a token has eight experts.
    assert direct.gb_between_hosts == pytest.approx(4 * both.gb_between_hosts)
    assert both.gb_between_hosts == pytest.approx(2 * one.gb_between_hosts)
    assert direct.between_hosts_us > both.between_hosts_us > one.between_hosts_us
    assert direct.within_hosts_us == 0 < both.within_hosts_us == one.within_hosts_us
    assert "µs" in svg_of([shapes.SHAPES["experts"][1](points)])
