"""Convergence: the loss of a model as a replay of a run changes its weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weft.jobs.parameter_server.replay import Moment, Objective, Weights

MOST_SAMPLES = 200


class TrainedModel(Objective, Protocol):
    """A model that is trained and evaluated."""

    def loss(self, weights: Weights) -> float:
        """Return the mean loss over the training data."""

    def accuracy(self, weights: Weights) -> float:
        """Return the share of the training data that the model classifies correctly."""


@dataclass(frozen=True)
class Convergence:
    """Samples of the loss: steps that all workers had done, time, and loss.

    Attributes:
        diverged: whether the loss was infinite or NaN after the last sample.
        accuracy: accuracy at the end.
    """

    steps: list[int]
    times_ps: list[int]
    losses: list[float]
    diverged: bool
    accuracy: float

    def first_within(self, loss: float) -> tuple[int, int] | None:
        """Return step and time (ps) of the first sample with at most this loss; None if none reaches it."""
        samples = zip(self.steps, self.times_ps, self.losses, strict=True)
        return next(((step, time_ps) for step, time_ps, found in samples if found <= loss), None)


def convergence(moments: Iterable[Moment], model: TrainedModel, steps: int) -> Convergence:
    """Return the loss at up to 202 of `steps` steps, evenly spaced and including the last.

    The first moment must be before any step, where the loss is finite.
    """
    taken: list[int] = []
    times_ps: list[int] = []
    losses: list[float] = []
    every, diverged = -(-steps // MOST_SAMPLES), False
    with np.errstate(over="ignore", invalid="ignore"):
        for moment in moments:
            weights = moment.weights
            if moment.steps % every and moment.steps != steps:
                continue
            loss = model.loss(weights)
            if diverged := not math.isfinite(loss):
                break
            taken.append(moment.steps)
            times_ps.append(moment.time_ps)
            losses.append(loss)
        accuracy = model.accuracy(weights)
    return Convergence(taken, times_ps, losses, diverged, accuracy)
