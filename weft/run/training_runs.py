"""Training over a fabric: ranks compute gradients, the fabric sums them, and the sums update the weights."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.clocks.lab import Progress
from weft.errors import CheckFailedError
from weft.jobs.digits_mlp import DigitsMlp, Weights
from weft.quantities.units import PS_PER_US
from weft.results.clearances import clearances_of_parts
from weft.results.training_runs import TrainingRunResult
from weft.results.training_steps import TrainingStepResult
from weft.traffic.clear_to_send import ClearToSend
from weft.traffic.data_types import DataType
from weft.traffic.training import Layer, TrainingStep

if TYPE_CHECKING:
    from weft.run.fabric import Fabric

_ATTEMPTS = 10
_LINES = 10
_BETWEEN_ATTEMPTS_S = 0.001


@dataclass(frozen=True)
class TrainingRunPlan:
    """The model and its training; `compute_ps` is the time of a step's forward and backward pass on every rank.

    Layers share it in proportion to their parameters, a third forward and two thirds backward, as matrix products do:
    one product forward, one for weight gradients and one for input gradients.
    """

    model: DigitsMlp
    steps: int
    learning_rate: float
    target_loss: float
    compute_ps: int
    optimizer_ps: int
    bucket_bytes: int
    clear_to_send: ClearToSend | None
    loss_bound: float
    accuracy_bound: float

    def step(self) -> TrainingStep:
        """Return the timing of a step."""
        counts = self.model.layer_parameters
        ends_ps = [self.compute_ps * sum(counts[: place + 1]) // sum(counts) for place in range(len(counts))]
        layers = []
        for count, begin_ps, end_ps in zip(counts, [0, *ends_ps], ends_ps, strict=False):
            forward_ps = (end_ps - begin_ps) // 3
            layers.append(Layer(count, forward_ps, end_ps - begin_ps - forward_ps))
        return TrainingStep(tuple(layers), self.bucket_bytes, self.optimizer_ps)


class _Alone:
    """Training by one process: the loss before the first step and after each, and the accuracy at the end."""

    def __init__(self, plan: TrainingRunPlan) -> None:
        weights = plan.model.initial
        self.losses = [plan.model.loss(weights)]
        for number in range(plan.steps):
            rate = np.float32(plan.learning_rate)
            weights = weights - rate * plan.model.mean_gradient(weights, number)
            self.losses.append(finite_loss(plan.model, weights, number))
        self.accuracy = plan.model.accuracy(weights)


def train(fabric: Fabric, plan: TrainingRunPlan, algorithm: str, progress: Progress) -> TrainingRunResult:
    """Train over all ranks of a fabric with one all-reduce algorithm.

    A step that fails while links fail is repeated from the same weights, as training resumes from its last checkpoint.

    Raises:
        CheckFailedError: a step failed otherwise, or the loss became infinite or NaN.
    """
    alone, model, step = _Alone(plan), plan.model, plan.step()
    weights, losses = model.initial, [model.loss(model.initial)]
    ran: list[tuple[TrainingStepResult, int]] = []
    repeated = 0
    for number in range(plan.steps):
        if number % max(1, plan.steps // _LINES) == 0:
            progress(_line(plan, algorithm, losses, ran))
        own = [model.gradient(weights, rank, number) for rank in range(fabric.topology.rank_count)]
        found, attempts, lost_ps = _summed(fabric, step, plan, algorithm, [_last_first(step, each) for each in own])
        repeated += attempts
        result, sums = found
        ran.append((result, lost_ps))
        # `identical` reports whether all ranks have the same bits; if so, the first rank's sums stand for all.
        mean = _last_first(replace(step, layers=step.layers[::-1]), sums[0]) / np.float32(len(own))
        weights = weights - np.float32(plan.learning_rate) * mean
        losses.append(finite_loss(model, weights, number))
    return TrainingRunResult(
        algorithm=algorithm,
        ranks=fabric.topology.rank_count,
        parameters=len(weights),
        buckets=len(step.buckets(DataType.FLOAT32.element_bytes)),
        compute_ps=step.compute_ps,
        steps_ps=[result.step_ps + lost_ps for result, lost_ps in ran],
        repeated=repeated,
        losses=losses,
        single_losses=alone.losses,
        loss_bound=plan.loss_bound,
        accuracy=model.accuracy(weights),
        single_accuracy=alone.accuracy,
        accuracy_bound=plan.accuracy_bound,
        target_loss=plan.target_loss,
        wrong=sum(result.wrong for result, _ in ran),
        identical=all(result.identical for result, _ in ran),
        retransmissions=sum(result.retransmissions for result, _ in ran),
        clear_to_send=clearances_of_parts([result for result, _ in ran]),
    )


def _line(plan: TrainingRunPlan, algorithm: str, losses: list[float], ran: list[tuple[TrainingStepResult, int]]) -> str:
    """Return the progress of the training, in words."""
    text = f"step {len(ran) + 1} of {plan.steps}, {algorithm}, loss {losses[-1]:.3f}"
    return text + (f", the last step took {ran[-1][0].step_ps / PS_PER_US:.1f} µs" if ran else "")


def finite_loss(model: DigitsMlp, weights: Weights, step: int) -> float:
    """Return a model's loss. Raises CheckFailedError if it is infinite or NaN."""
    loss = model.loss(weights)
    if not math.isfinite(loss):
        raise CheckFailedError(f"the loss is {loss} after step {step + 1}: a smaller learning rate is needed")
    return loss


def _last_first(step: TrainingStep, gradients: Weights) -> Weights:
    """Return layer-by-layer gradients with the layers reversed, in the order of the backward pass."""
    ends = np.cumsum([layer.gradient_count for layer in step.layers])[:-1]
    return np.concatenate(np.split(gradients, ends)[::-1])


def _summed(
    fabric: Fabric, step: TrainingStep, plan: TrainingRunPlan, algorithm: str, gradients: list[Weights]
) -> tuple[tuple[TrainingStepResult, list[NDArray[Any]]], int, int]:
    """Run a step; return its result and every rank's sums, the number of failed attempts, and their time in ps."""
    began_ps, lost_ps = fabric.hosts.now_ps(), 0
    for failed in range(_ATTEMPTS):
        task = fabric.tasks.training_step(step, algorithm, gradients, clear_to_send=plan.clear_to_send).with_run()
        try:
            [(result, ended)] = fabric.run_together([task])
            return (result, ended.outputs), failed, lost_ps
        except CheckFailedError:
            if failed + 1 == _ATTEMPTS or not _links_changed(fabric, began_ps):
                raise
        # The controller may not have computed another tree yet.
        fabric.lab.controller.call(asyncio.sleep(_BETWEEN_ATTEMPTS_S))
        lost_ps = fabric.hosts.now_ps() - began_ps
    raise AssertionError("the last attempt returns or raises")


def _links_changed(fabric: Fabric, since_ps: int) -> bool:
    """Return whether a link has failed or come back since `since_ps`."""
    events = fabric.lab.link_events.results_now()
    return any(each.happened_ps is not None and each.happened_ps >= since_ps for each in events)
