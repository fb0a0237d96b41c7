"""Training steps: buckets, their order, and what they leave in the data."""

import numpy as np
import pytest
from collective_results import assert_right, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import Interpreter

from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import Layer, TrainingStep, training_step_schedule

FLAT = ["ring", "tree", "halving-doubling", "in-network"]


def spec_of(ranks, elements, planes=2):
    return CollectiveSpec(ranks, elements, DataType.INT32, Operation.SUM, (1,) * planes, piece_bytes=256)


def interpreted(step, algorithm, spec, inputs=None, seed=0):
    """All ranks' schedules of a step, about to run."""
    schedules = [training_step_schedule(step, algorithm, spec, rank) for rank in range(spec.rank_count)]
    return Interpreter(schedules, inputs_of(spec, seed) if inputs is None else inputs, seed)


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=6).filter(any),
    st.integers(0, 2000),
    st.integers(1, 5),
    st.sampled_from(FLAT),
    st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_every_gradient_is_summed_whatever_the_buckets(counts, bucket_bytes, ranks, algorithm, seed):
    step = TrainingStep(tuple(Layer(count, 1, 2) for count in counts), bucket_bytes)
    spec = spec_of(ranks, step.gradient_count)
    inputs = inputs_of(spec, seed)
    results = interpreted(step, algorithm, spec, inputs, seed).results("int32")
    assert_right("allreduce", spec, inputs, results)


def test_buckets_fill_from_the_last_layer_on():
    step = TrainingStep(tuple(Layer(count, 0, 0) for count in (10, 20, 5, 30, 0)), bucket_bytes=4 * 30)
    assert step.buckets(4) == [(range(30), 2), (range(30, 65), 5)]
    whole = TrainingStep(step.layers, bucket_bytes=10**6)
    assert whole.buckets(4) == [(range(65), 5)]
    single = TrainingStep(step.layers, bucket_bytes=0)
    assert [passed for _, passed in single.buckets(4)] == [2, 3, 4, 5]


@pytest.mark.parametrize("algorithm", FLAT)
def test_a_bucket_waits_for_its_layers_and_for_the_bucket_before(algorithm):
    step = TrainingStep((Layer(64, 5, 10), Layer(64, 6, 20), Layer(64, 7, 30)), bucket_bytes=4 * 64, optimizer_ps=9)
    spec = spec_of(2, 192, planes=1)
    interpreter = interpreted(step, algorithm, spec)
    interpreter.results("int32")
    begun = {sent.time_ps for sent in interpreter.sent} | set(interpreter.aggregated_ps)
    assert begun == {18 + 30, 18 + 50, 18 + 60}
    assert interpreter.now_ps == step.compute_ps == 18 + 60 + 9


def test_lengths_keep_the_order_of_a_step():
    step = TrainingStep((Layer(640, 5, 10), Layer(640, 6, 20)), bucket_bytes=4)
    whole = interpreted(step, "ring", spec_of(3, 1280))
    whole.results("int32")
    lengths = Interpreter([each.of_lengths() for each in whole.schedules], [np.zeros(0, np.int32)] * 3)
    lengths.results("int32")
    transfers = [
        sorted((each.time_ps, each.rank, each.channel.peer, each.immediate, each.length_bytes) for each in sent)
        for sent in (whole.sent, lengths.sent)
    ]
    assert transfers[0] == transfers[1]


def test_buckets_with_more_transfers_than_immediates_are_refused():
    step = TrainingStep(tuple(Layer(64, 0, 0) for _ in range(1 << 12)), bucket_bytes=4)
    spec = CollectiveSpec(256, 64 << 12, DataType.INT32, Operation.SUM, (1,))
    with pytest.raises(ValueError, match="a bucket has more than 256 transfers"):
        training_step_schedule(step, "ring", spec, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": ()}, "without gradients"),
        ({"layers": (Layer(0, 1, 1),)}, "without gradients"),
        ({"bucket_bytes": -1}, "negative"),
        ({"layers": (Layer(1, -1, 1),)}, "negative"),
    ],
)
def test_senseless_steps_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TrainingStep(**({"layers": (Layer(1, 1, 1),), "bucket_bytes": 4} | change))


def test_a_step_of_other_gradients_is_refused():
    step = TrainingStep((Layer(4, 0, 0),), 4)
    with pytest.raises(ValueError, match="5 elements for 4 gradients"):
        training_step_schedule(step, "ring", spec_of(2, 5), 0)
