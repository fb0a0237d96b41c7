"""Assigns requests to instances and schedules their prompts, both independently of the fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.jobs.inference.assignments import ASSIGNMENTS
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.requests import LONGEST_PS
from weft.jobs.training_plan import PlanError
from weft.quantities.arrays import Integers
from weft.quantities.readable import format_time


@dataclass(frozen=True, eq=False)
class PrefillSchedule:
    """Instances and prefill times of each request, in order of arrival.

    Attributes:
        prefill: its prefill instance.
        decode: its decode instance.
        start_ps: when its prompt begins to be computed.
        end_ps: when its prompt has been computed.
    """

    prefill: Integers
    decode: Integers
    start_ps: Integers
    end_ps: Integers


def prefill_times(plan: InferencePlan) -> InstanceTimes:
    """Return the durations of a prefill instance's computations."""
    return InstanceTimes(plan.model, plan.prefill, plan.precision, plan.kv_element_bytes)


def prefill_schedule(plan: InferencePlan) -> PrefillSchedule:
    """Assign requests to instances as they arrive; each prefill instance serves them first in, first out.

    Raises PlanError if prompts are computed beyond `LONGEST_PS`.
    """
    times, requests = prefill_times(plan), plan.requests
    to_prefill, to_decode = ASSIGNMENTS[plan.prefill_assignment], ASSIGNMENTS[plan.decode_assignment]
    free_ps = np.zeros(plan.prefill.instances, np.int64)
    given_tokens = np.zeros(plan.decode.instances, np.int64)
    rows: list[tuple[int, int, int, int]] = []
    arrivals, prompts = requests.arrival_ps.tolist(), requests.prompt_tokens.tolist()
    for number, (arrival_ps, tokens) in enumerate(zip(arrivals, prompts, strict=True)):
        prefill = to_prefill.choose(number, np.maximum(0, free_ps - arrival_ps))
        decode = to_decode.choose(number, given_tokens)
        start_ps = max(arrival_ps, int(free_ps[prefill]))
        end_ps = start_ps + times.prefill_ps(tokens)
        if end_ps > LONGEST_PS:
            raise PlanError(
                "requests",
                f"prompts are computed for {format_time(end_ps)}",
                valid=f"up to {format_time(LONGEST_PS)}",
            )
        free_ps[prefill] = end_ps
        given_tokens[decode] += tokens
        rows.append((prefill, decode, start_ps, end_ps))
    return PrefillSchedule(*np.array(rows, np.int64).T)
