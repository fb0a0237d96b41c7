"""Makes jobs of collectives and data-parallel steps on all ranks, so that they can be written as traces."""

from __future__ import annotations

from collections.abc import Sequence

from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.training import GRADIENT_COLLECTIVE, TrainingStep

EVERYBODY = "all"


def collectives_job(name: str, calls: Sequence[CollectiveCall], ranks: int) -> Job:
    """Return a job in which all ranks call the collectives one after the other."""
    builder = OperationsBuilder()
    last: list[int] = []
    for number in range(len(calls)):
        last = [builder.collective(0, number, after=last)]
    return _of_all(name, builder, tuple(calls), ranks)


def training_step_job(step: TrainingStep, algorithm: str, dtype: DataType, ranks: int) -> Job:
    """Return a step as a job; computations and all-reduces have the order that `TrainingStep` describes."""
    builder = OperationsBuilder()
    done = [builder.compute(sum(layer.forward_ps for layer in step.layers), name="forward", category="forward")]
    backward = []
    for layer in reversed(step.layers):
        done = [builder.compute(layer.backward_ps, after=done, name="backward", category="backward")]
        backward += done
    calls: list[CollectiveCall] = []
    reduced: list[int] = []
    for gradients, passed in step.buckets(dtype.element_bytes):
        call = CollectiveCall(GRADIENT_COLLECTIVE, len(gradients) * dtype.element_bytes, algorithm, dtype)
        if call not in calls:
            calls.append(call)
        after = [backward[passed - 1], *reduced]
        reduced = [builder.collective(0, calls.index(call), after=after, name="gradients", category="data")]
    builder.compute(step.optimizer_ps, after=[*reduced, *done], name="optimizer", category="optimizer")
    return _of_all("training step", builder, tuple(calls), ranks)


def _of_all(name: str, builder: OperationsBuilder, calls: tuple[CollectiveCall, ...], ranks: int) -> Job:
    part = RankPart(builder.build(), (), (0,))
    return Job(name, (part,) * ranks, (Group(EVERYBODY, tuple(range(ranks))),), calls)
