"""How the loss of a model falls as a replay of a run changes its weights."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weft.jobs.parameter_server.replay import Moment, Objective, Weights

MOST_SAMPLES = 200


class TrainedModel(Objective, Protocol):
    """What is trained, with its loss."""

    def loss(self, weights: Weights) -> float:
        """Return the mean loss of everything that it is trained on."""

    def accuracy(self, weights: Weights) -> float:
        """Return the share of that which it recognises."""


@dataclass(frozen=True)
class Convergence:
    """Samples of the loss: after how many steps of all workers, and when.

    Attributes:
        diverged: whether the loss ceased to be a number after the last of them.
        accuracy: at the end.
    """

    steps: list[int]
    times_ps: list[int]
    losses: list[float]
    diverged: bool
    accuracy: float

    def first_within(self, loss: float) -> tuple[int, int] | None:
        """Return step and time of the first sample whose loss is no larger; None if there is none."""
        samples = zip(self.steps, self.times_ps, self.losses, strict=True)
        return next(((step, time_ps) for step, time_ps, found in samples if found <= loss), None)


def convergence(moments: Iterable[Moment], model: TrainedModel, steps: int) -> Convergence:
    """Return the loss of at most 202 steps of so many, evenly spaced, and the last.

    The first of the moments is before any step, when the loss is a number.
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
