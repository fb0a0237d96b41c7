"""Trains for real after a run: replays pushes and pulls with numbers, in the order in which the fabric delivered them.

A message's arrival depends on its size, not on its contents. So a run moves sizes only, and the replay computes the
numbers from its times: a server's shard changes when an update ends, and a worker reads it when the server begins to
send it. A read includes updates that end at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.jobs.parameter_server.all_reduce import AllReduceTimes
from weft.jobs.parameter_server.job import ServerTimes
from weft.jobs.parameter_server.plan import ParameterServerPlan
from weft.quantities.arrays import Integers

Weights = NDArray[np.float32]
_Change = Callable[[int, int, int], bool]
_UPDATE, _READ = 0, 1


class Objective(Protocol):
    """A function to minimise."""

    initial: Weights
    """Weights with which all workers and servers begin."""

    def gradient(self, weights: Weights, worker: int, step: int) -> Weights:
        """Return the gradient of a worker's batch in a step."""


@dataclass(frozen=True)
class Moment:
    """The weights of all servers at a point in time.

    Attributes:
        steps: gradients applied over the number of workers: a whole number.
        time_ps: time since the start.
        weights: a view, which later moments change.
    """

    steps: int
    time_ps: int
    weights: Weights


@singledispatch
def replay(
    times: ServerTimes | AllReduceTimes, plan: ParameterServerPlan, objective: Objective, learning_rate: float
) -> Iterator[Moment]:
    """Yield the weights at the start and each time that one more gradient per worker has been applied.

    A gradient is scaled by the learning rate over the number of workers. So the gradients of all workers at the same
    weights change them as their mean would.
    """
    raise TypeError(f"no steps of {type(times).__name__}")


@replay.register
def _(times: ServerTimes, plan: ParameterServerPlan, objective: Objective, learning_rate: float) -> Iterator[Moment]:
    state = _State(plan, objective, np.float32(learning_rate / plan.workers))
    yield Moment(0, 0, state.weights)
    changes, per_step = 0, plan.servers * (1 if times.applied_ps is not None else plan.workers)
    for time_ps, changed in _events(times, state):
        if changed:
            changes += 1
            if changes % per_step == 0:
                yield Moment(changes // per_step, time_ps, state.weights)


@replay.register
def _(times: AllReduceTimes, plan: ParameterServerPlan, objective: Objective, learning_rate: float) -> Iterator[Moment]:
    weights, rate = objective.initial.copy(), np.float32(learning_rate / plan.workers)
    yield Moment(0, 0, weights)
    for step, time_ps in enumerate(times.changed_ps.max(axis=0).tolist()):
        total = np.zeros_like(weights)
        for worker in range(plan.workers):
            total += objective.gradient(weights, worker, step)
        weights -= rate * total
        yield Moment(step + 1, time_ps, weights)


class _State:
    """The servers' weights, each worker's copy, and gradients in flight."""

    def __init__(self, plan: ParameterServerPlan, objective: Objective, rate: np.float32) -> None:
        self.weights = objective.initial.copy()
        self._objective, self._rate = objective, rate
        ends = plan.shard_ends.tolist()
        self._shards = [slice(*pair) for pair in pairwise(ends)]
        self._read = [objective.initial.copy() for _ in range(plan.workers)]
        self._sums = np.zeros_like(self.weights)
        self._gradients: dict[tuple[int, int], tuple[Weights, int]] = {}

    def add_to_weights(self, worker: int, step: int, server: int) -> bool:
        """Apply a gradient to a shard of the weights; return True."""
        shard = self._shards[server]
        self.weights[shard] -= self._rate * self._gradient(worker, step)[shard]
        return True

    def add_to_sum(self, worker: int, step: int, server: int) -> bool:
        """Add a gradient to a shard of the sum; return False, as weights do not change."""
        shard = self._shards[server]
        self._sums[shard] += self._gradient(worker, step)[shard]
        return False

    def apply_sum(self, _worker: int, _step: int, server: int) -> bool:
        """Apply the sum to a shard of the weights; return True."""
        shard = self._shards[server]
        self.weights[shard] -= self._rate * self._sums[shard]
        self._sums[shard] = 0
        return True

    def read(self, worker: int, _step: int, server: int) -> bool:
        """Have a worker read a shard; return False."""
        shard = self._shards[server]
        self._read[worker][shard] = self.weights[shard]
        return False

    def _gradient(self, worker: int, step: int) -> Weights:
        """Return a gradient at the worker's copy of the weights; it is kept until all servers have used it."""
        gradient, left = self._gradients.pop((worker, step), (None, len(self._shards)))
        if gradient is None:
            gradient = self._objective.gradient(self._read[worker], worker, step)
        if left > 1:
            self._gradients[worker, step] = (gradient, left - 1)
        return gradient


def _events(times: ServerTimes, state: _State) -> Iterator[tuple[int, bool]]:
    """Carry out all updates and reads of the state; yield the time of each and whether weights have changed.

    They are ordered by time; at the same time updates precede reads, then by worker, step and server.
    """
    added = state.add_to_weights if times.applied_ps is None else state.add_to_sum
    kinds: list[tuple[Integers, int, _Change]] = [(times.updated_ps, _UPDATE, added)]
    if times.applied_ps is not None:
        kinds.append((times.applied_ps[np.newaxis], _UPDATE, state.apply_sum))
    kinds.append((times.answered_ps, _READ, state.read))
    moments_ps = np.concatenate([each.ravel() for each, _, _ in kinds])
    ranks = np.concatenate([np.full(each.size, rank) for each, rank, _ in kinds])
    places = [(change, *place) for each, _, change in kinds for place in np.ndindex(each.shape)]
    for number in np.lexsort((np.arange(len(places)), ranks, moments_ps)).tolist():
        change, worker, step, server = places[number]
        yield int(moments_ps[number]), change(worker, step, server)
