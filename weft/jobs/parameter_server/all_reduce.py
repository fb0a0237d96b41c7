"""The baseline without servers: a job of workers that all-reduce their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.jobs.parameter_server.plan import ParameterServerPlan
from weft.quantities.arrays import Integers
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart
from weft.traffic.jobs.breakdown import Times
from weft.traffic.training import GRADIENT_COLLECTIVE


@dataclass(frozen=True, eq=False)
class AllReduceTimes:
    """When the phases of workers' steps ended, in ps: arrays of shape (workers, steps).

    Attributes:
        computed_ps: end of the computation.
        began_ps: start of the all-reduce, when the last worker had computed.
        reduced_ps: when the worker had the sum.
        changed_ps: when the worker had updated its weights.
    """

    computed_ps: Integers
    began_ps: Integers
    reduced_ps: Integers
    changed_ps: Integers


@dataclass(frozen=True, eq=False)
class AllReduceJob:
    """A job, and the numbers of its operations: arrays of shape (workers, steps)."""

    plan: ParameterServerPlan
    job: Job
    computed: Integers
    reduced: Integers
    changed: Integers

    def times(self, of_ranks: Sequence[Times]) -> AllReduceTimes:
        """Return the times of workers' steps, given the operation times of each rank in a run."""

        def finished(numbers: Integers) -> Integers:
            return np.stack([each.finished_ps[own] for each, own in zip(of_ranks, numbers, strict=True)])

        computed_ps = finished(self.computed)
        began_ps = np.broadcast_to(computed_ps.max(axis=0), computed_ps.shape)
        return AllReduceTimes(computed_ps, began_ps, finished(self.reduced), finished(self.changed))


def all_reduce_job(plan: ParameterServerPlan) -> AllReduceJob:
    """Return the job of all steps. Each worker updates its own copy of the weights with the sum."""
    shape = (plan.workers, plan.steps)
    computed, reduced, changed = (np.zeros(shape, np.int64) for _ in range(3))
    update_ps = plan.update_ps(plan.parameter_bytes)
    parts = []
    for worker in range(plan.workers):
        operations, last = OperationsBuilder(), list[int]()
        for step, duration_ps in enumerate(plan.compute_times_ps(worker).tolist()):
            before = operations.compute(duration_ps, after=last, category="compute")
            summed = operations.collective(0, 0, after=[before], category="all-reduce")
            last = [operations.compute(update_ps, after=[summed], category="update")]
            computed[worker, step], reduced[worker, step], changed[worker, step] = before, summed, last[0]
        parts.append(RankPart(operations.build(), (), (0,)))
    workers = Group("workers", tuple(range(plan.workers)))
    call = CollectiveCall(GRADIENT_COLLECTIVE, plan.parameter_bytes, plan.algorithm)
    return AllReduceJob(plan, Job(plan.title, tuple(parts), (workers,), (call,)), computed, reduced, changed)
