"""All-reduce across switches that run p4/fabric.p4, checked against NumPy."""

import numpy as np
import pytest

from end_to_end_data import ALGORITHMS, buffers
from weft.errors import BadInputError
from weft.run.collectives import CollectiveRequest


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("count", [1, 63, 64, 1000, 5000])
def test_int32_is_exact(small_fabric, algorithm, count):
    inputs = buffers(np.int32, count, 4)
    run = small_fabric.run(CollectiveRequest("allreduce", inputs, algorithm))
    expected = np.sum(inputs, axis=0, dtype=np.int64).astype(np.int32)
    for result in run.buffers:
        np.testing.assert_array_equal(result, expected)
    assert run.result.ok


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_float32_is_within_its_bound_and_the_same_on_all_ranks(small_fabric, algorithm):
    run = small_fabric.run(CollectiveRequest("allreduce", buffers(np.float32, 3001, 4), algorithm))
    assert run.result.wrong == 0
    assert run.result.identical
    for result in run.buffers:
        assert result.tobytes() == run.buffers[0].tobytes()


def test_the_switches_add_and_not_the_hosts(small_fabric):
    """4 workers send 16 packets each to 2 leaves, which send 16 each to the spine: 96 contributions, 32 results."""
    run = small_fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 1024, 4), "in-network"))
    assert run.result.packets_aggregated >= 128
    before = small_fabric.summary().planes[0].packets_aggregated
    run = small_fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 1024, 4), "ring"))
    assert run.result.packets_aggregated == 0
    assert small_fabric.summary().planes[0].packets_aggregated == before


def test_a_shape_is_kept(small_fabric):
    inputs = [each.reshape(8, 16) for each in buffers(np.float32, 128, 4)]
    assert small_fabric.run(CollectiveRequest("allreduce", inputs, "ring")).buffers[0].shape == (8, 16)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays: arrays[:3], "3 buffers for 4 hosts"),
        (lambda arrays: [each.astype(np.float64) for each in arrays], "float64"),
        (lambda arrays: [*arrays[:3], arrays[3][:-1]], "must be alike"),
        (lambda arrays: [np.full(4, np.nan, np.float32)] * 4, "NaN"),
        (lambda arrays: [np.empty(0, np.float32)] * 4, "empty"),
    ],
)
def test_buffers_that_cannot_be_reduced_are_refused(small_fabric, change, words):
    with pytest.raises(BadInputError, match=words):
        small_fabric.run(CollectiveRequest("allreduce", change(buffers(np.float32, 64, 4)), "ring"))


def test_unknown_names_are_refused_with_the_nearest(small_fabric):
    with pytest.raises(BadInputError, match="in-network"):
        small_fabric.run(CollectiveRequest("allreduce", buffers(np.int32, 64, 4), "in-netwrok"))
    with pytest.raises(BadInputError, match="allreduce"):
        small_fabric.run(CollectiveRequest("all-reduce", buffers(np.int32, 64, 4)))
