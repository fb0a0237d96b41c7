"""Which instances serve each request, and when its prompt is computed: nothing of it depends on the fabric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.jobs.inference.assignments import ASSIGNMENTS
from weft.jobs.inference.instance_times import InstanceTimes
from weft.jobs.inference.plan import InferencePlan
from weft.jobs.inference.requests import LONGEST_PS, Integers
from weft.jobs.training_plan import PlanError
from weft.quantities.readable import format_time


@dataclass(frozen=True, eq=False)
class PrefillSchedule:
    """Of each request, in order.

    Attributes:
        prefill: its prefill instance.
        decode: its decode instance.
        start_ps: when its prompt begins to be computed.
        end_ps: when it has been.
    """

    prefill: Integers
    decode: Integers
    start_ps: Integers
    end_ps: Integers


def prefill_times(plan: InferencePlan) -> InstanceTimes:
    """Return the durations of a prefill instance's computations."""
    return InstanceTimes(plan.model, plan.prefill, plan.precision, plan.kv_element_bytes)


def prefill_schedule(plan: InferencePlan) -> PrefillSchedule:
    """Assign requests to instances as they arrive; each prefill instance serves its own first in, first out.

    Raises PlanError if that takes too long.
    """
    times, requests = prefill_times(plan), plan.requests
    to_prefill, to_decode = ASSIGNMENTS[plan.prefill_assignment], ASSIGNMENTS[plan.decode_assignment]
    free_ps = [0] * plan.prefill.instances
    given_tokens = [0] * plan.decode.instances
    rows: list[tuple[int, int, int, int]] = []
    arrivals, prompts = requests.arrival_ps.tolist(), requests.prompt_tokens.tolist()
    for number, (arrival_ps, tokens) in enumerate(zip(arrivals, prompts, strict=True)):
        prefill = to_prefill.choose(number, [max(0, each - arrival_ps) for each in free_ps])
        decode = to_decode.choose(number, given_tokens)
        start_ps = max(arrival_ps, free_ps[prefill])
        free_ps[prefill] = start_ps + times.prefill_ps(tokens)
        if free_ps[prefill] > LONGEST_PS:
            raise PlanError(
                "requests",
                f"prompts are computed for {format_time(free_ps[prefill])} (valid: up to {format_time(LONGEST_PS)})",
            )
        given_tokens[decode] += tokens
        rows.append((prefill, decode, start_ps, free_ps[prefill]))
    return PrefillSchedule(*np.array(rows, np.int64).T)
