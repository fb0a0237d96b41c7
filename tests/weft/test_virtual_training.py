"""Training steps in virtual time: right sums, exact compute, exposed communication."""

import json

import numpy as np
import pytest

from tests.refusals import refused
from weft import BadInputError, Fabric, topologies
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario
from weft.traffic.training import Layer, TrainingStep

MS = 10**9
FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
STEP = {
    "training_step": "data-parallel",
    "layers": [{"gradients": "64KiB", "forward": "100us", "backward": "200us", "count": 3}],
    "bucket": "64KiB",
    "optimizer": "50us",
}


def run_step(**change):
    return run_scenario(parse_scenario({"clock": "virtual", "fabric": FABRIC, "traffic": [STEP | change]}))


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_steps_sum_all_gradients_by_every_algorithm(dtype, tmp_path):
    result = run_step(dtype=dtype)
    steps = result.training_steps
    assert [step.algorithm for step in steps] == ["ring", "tree", "halving-doubling", "in-network"]
    assert all(step.ok and step.verified for step in steps)
    assert all((step.layers, step.buckets, step.compute_ps) == (3, 3, 950_000_000) for step in steps)
    assert all(0 < step.exposed_ps < step.step_ps for step in steps)
    saved = json.loads(result.save(tmp_path).read_text())["training_steps"][0]
    assert saved["exposed_ps"] == saved["step_ps"] - saved["compute_ps"]


def test_communication_that_fits_beside_the_backward_pass_is_hidden():
    """All but the last bucket, whose all-reduce nothing is left to hide."""
    topology = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    layers = tuple(Layer(16384, 0, MS) for _ in range(4))
    with Fabric(topology, clock="virtual") as fabric:
        alone_ps = fabric.run(CollectiveRequest("allreduce", 65536, "in-network")).result.time_ps
        overlapped = fabric.training_step(TrainingStep(layers, bucket_bytes=1), "in-network")
        at_the_end = fabric.training_step(TrainingStep(layers, bucket_bytes=10**9), "in-network")
    assert (overlapped.buckets, at_the_end.buckets) == (4, 1)
    assert overlapped.exposed_ps == alone_ps
    assert at_the_end.exposed_ps > 3 * alone_ps
    assert not overlapped.verified


def test_lengths_take_the_time_that_data_takes():
    times = {data: [step.step_ps for step in run_step(data=data).training_steps] for data in ("random", "lengths")}
    assert times["random"] == times["lengths"]


def test_gradients_may_be_given_and_must_fit():
    topology = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    step = TrainingStep((Layer(10, 1, 1),), 4)
    with Fabric(topology, clock="virtual") as fabric:
        given = [np.arange(10, dtype=np.int32) + rank for rank in range(2)]
        assert fabric.training_step(step, "ring", given).ok
        with refused(BadInputError, problem="buffers of 9 gradients for a"):
            fabric.training_step(step, "ring", [each[:9] for each in given])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": []}, ["layers"]),
        ({"layers": [{"gradients": 6}]}, ["layers[0].gradients", "multiple of 4"]),
        ({"algorithms": ["direct"]}, ["allreduce has no algorithm 'direct'", "ring"]),
        ({"training_step": "pipeline"}, ["training_step", "data-parallel"]),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(BadInputError) as refused:
        run_step(**change)
    assert all(word in str(refused.value) for word in words), refused.value
