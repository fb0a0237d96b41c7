"""Divides workers' steps into consecutive parts that add up to the step.

A step with servers ends when the last server's weights have arrived. Its parts follow the path through that server:
`compute`, `push` (the gradient's transfer), `update` (the server's addition and the queue before it), `wait` (for
gradients of other workers) and `pull` (the weights' transfer). A step with an all-reduce has `compute`, `wait` (for
workers that still compute), `all-reduce` and `update`.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from weft.jobs.parameter_server.all_reduce import AllReduceTimes
from weft.jobs.parameter_server.job import ServerTimes
from weft.quantities.arrays import Integers


@singledispatch
def step_parts(times: ServerTimes | AllReduceTimes) -> dict[str, Integers]:
    """Return the parts of each worker's steps by name, in ps: arrays [worker, step]."""
    raise TypeError(f"no steps of {type(times).__name__}")


@step_parts.register
def _(times: ServerTimes) -> dict[str, Integers]:
    ended_ps = times.pulled_ps.max(axis=2)
    last = times.pulled_ps.argmax(axis=2, keepdims=True)

    def by_last(values: Integers) -> Integers:
        return np.take_along_axis(np.broadcast_to(values, times.pulled_ps.shape), last, axis=2)[..., 0]

    pushed_ps, updated_ps = by_last(times.pushed_ps), by_last(times.updated_ps)
    update_ps, wait_ps = updated_ps - pushed_ps, by_last(times.answered_ps) - updated_ps
    if times.applying_ps is not None and times.applied_ps is not None:
        applying_ps = by_last(times.applied_ps - times.applying_ps)
        update_ps, wait_ps = update_ps + applying_ps, wait_ps - applying_ps
    return {
        "compute": times.computed_ps - _begun(ended_ps),
        "push": pushed_ps - times.computed_ps,
        "update": update_ps,
        "wait": wait_ps,
        "pull": ended_ps - by_last(times.answered_ps),
    }


@step_parts.register
def _(times: AllReduceTimes) -> dict[str, Integers]:
    return {
        "compute": times.computed_ps - _begun(times.changed_ps),
        "wait": times.began_ps - times.computed_ps,
        "all-reduce": times.reduced_ps - times.began_ps,
        "update": times.changed_ps - times.reduced_ps,
    }


def _begun(ended_ps: Integers) -> Integers:
    """Return when steps began: at the end of the previous step, the first at 0."""
    begun: Integers = np.concatenate([np.zeros((len(ended_ps), 1), np.int64), ended_ps[:, :-1]], axis=1)
    return begun
