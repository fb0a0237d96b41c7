"""Training steps: buckets, their order, and what they leave in the data."""

import numpy as np
import pytest
from collective_results import assert_right, inputs_of
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_interpreter import Interpreter

from weft.traffic.aggregation_format import Operation
from weft.traffic.schedule_nodes import Aggregate, DataType, Delay, WaitReceive, Write
from weft.traffic.schedules import CollectiveSpec
from weft.traffic.training import Layer, TrainingStep, training_step_schedule

FLAT = ["ring", "tree", "halving-doubling", "in-network"]


def spec_of(ranks, elements, planes=2):
    return CollectiveSpec(ranks, elements, DataType.INT32, Operation.SUM, (1,) * planes, piece_bytes=256)


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
    schedules = [training_step_schedule(step, algorithm, spec, rank) for rank in range(ranks)]
    assert_right("allreduce", spec, inputs, Interpreter(schedules, inputs, seed).results("int32"))


def test_buckets_fill_from_the_last_layer_on():
    step = TrainingStep(tuple(Layer(count, 0, 0) for count in (10, 20, 5, 30, 0)), bucket_bytes=4 * 30)
    assert step.buckets() == [(range(30), 2), (range(30, 65), 5)]
    whole = TrainingStep(step.layers, bucket_bytes=10**6)
    assert whole.buckets() == [(range(65), 5)]
    single = TrainingStep(step.layers, bucket_bytes=0)
    assert [passed for _, passed in single.buckets()] == [2, 3, 4, 5]


@pytest.mark.parametrize("algorithm", FLAT)
def test_a_bucket_waits_for_its_layers_and_for_the_bucket_before(algorithm):
    step = TrainingStep(
        (Layer(64, 5, 10), Layer(64, 6, 20), Layer(64, 7, 30)), bucket_bytes=4 * 64, optimizer_ps=9
    )
    schedule = training_step_schedule(step, algorithm, spec_of(2, 192, planes=1), 0)
    earliest = []
    for node, after in zip(schedule.nodes, schedule.after, strict=True):
        begun = max((earliest[number] for number in after), default=0)
        earliest.append(begun + (node.duration_ps if isinstance(node, Delay) else 0))
    sent = [
        earliest[number]
        for number, node in enumerate(schedule.nodes)
        if isinstance(node, Write | Aggregate | WaitReceive)
    ]
    assert set(sent) == {18 + 30, 18 + 50, 18 + 60}
    assert earliest[-1] == step.compute_ps == 18 + 60 + 9


def test_lengths_keep_the_order_of_a_step():
    step = TrainingStep((Layer(640, 5, 10), Layer(640, 6, 20)), bucket_bytes=4)
    spec = spec_of(3, 1280)
    whole = training_step_schedule(step, "ring", spec, 1)
    lengths = whole.of_lengths()
    kinds = (Write, WaitReceive, Delay)
    assert [type(node) for node in lengths.nodes] == [
        type(node) for node in whole.nodes if isinstance(node, kinds)
    ]
    schedules = [training_step_schedule(step, "ring", spec, rank).of_lengths() for rank in range(3)]
    Interpreter(schedules, [np.zeros(0, np.int32)] * 3).results("int32")


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
