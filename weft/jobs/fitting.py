"""Checks that a training step fits the memory and the engine's clock, and suggests single changes that make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from weft.jobs.formulas.flops import model_flops_per_token
from weft.jobs.parallelism import Parallelism
from weft.jobs.plan_summary import largest_memory
from weft.jobs.training_plan import PlanError, TrainingPlan
from weft.quantities.readable import format_size, format_time
from weft.quantities.units import PS_PER_S
from weft.traffic.jobs.operations import MAX_DURATION_PS

_MOST_CHANGES = 4
_MOST_SHOWN_PS = 1e30


def check_memory(plan: TrainingPlan) -> None:
    """Raise PlanError if a rank needs more memory than its accelerator has; the message suggests changes."""
    stage, memory = largest_memory(plan)
    if memory.total <= plan.accelerator.memory:
        return
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in vars(memory).items())
    changes = sufficient_changes(plan)
    advice = f" (valid, for instance: {'; '.join(changes)})" if changes else "; no change of one key suffices"
    raise PlanError(
        "accelerator",
        f"a rank of stage {stage} needs {format_size(memory.total)} ({parts}), its accelerator has "
        f"{format_size(plan.accelerator.memory)}{advice}",
    )


def check_duration(plan: TrainingPlan, slowest: float) -> None:
    """Raise PlanError if a rank slowed by a factor of `slowest` computes for longer than the engine's clock counts."""
    accelerator = plan.accelerator
    flops = plan.tokens * model_flops_per_token(plan.model) / plan.parallel.rank_count
    took_ps = flops / accelerator.flops_per_s(plan.precisions.compute) * slowest * PS_PER_S
    if took_ps > MAX_DURATION_PS:
        raise PlanError(
            "accelerator",
            f"the slowest rank computes for {format_time(min(took_ps, _MOST_SHOWN_PS))} in a step, at an efficiency of "
            f"{accelerator.efficiency:g}",
            valid=f"up to {format_time(MAX_DURATION_PS)}",
        )


def sufficient_changes(plan: TrainingPlan) -> list[str]:
    """Return up to four single-key changes that make the step fit; replicas are reduced to keep the number of ranks."""
    found: dict[str, str] = {}
    for key, value, changed in _changes(plan):
        if key not in found and largest_memory(changed)[1].total <= plan.accelerator.memory:
            found[key] = f"{key}: {value}"
    return list(found.values())[:_MOST_CHANGES]


def _changes(plan: TrainingPlan) -> Iterator[tuple[str, object, TrainingPlan]]:
    """Yield changes that keep the numbers of ranks and sequences, the smallest change of each key first."""
    parallel = plan.parallel
    for zero in range(parallel.zero + 1, 4):
        yield from _changed(plan, "parallel.zero", zero, {"zero": zero})
    for key in ("tensor", "pipeline"):
        for factor in range(2, parallel.data + 1):
            if parallel.data % factor == 0:
                degrees = {key: getattr(parallel, key) * factor, "data": parallel.data // factor}
                value = f"{degrees[key]} with data: {degrees['data']}"
                more = plan.micro_batches * factor
                yield from _changed(plan, f"parallel.{key}", value, degrees, micro_batches=more)
    for size in range(plan.micro_batch - 1, 0, -1):
        if plan.micro_batch % size == 0:
            more = plan.micro_batches * plan.micro_batch // size
            yield from _changed(plan, "micro_batch", size, {}, micro_batch=size, micro_batches=more)
    if plan.recomputation != "full":
        yield from _changed(plan, "recomputation", "full", {}, recomputation="full")


def _changed(
    plan: TrainingPlan, key: str, value: object, degrees: Mapping[str, int], **fields: Any
) -> Iterator[tuple[str, object, TrainingPlan]]:
    """Yield the change if it gives a valid plan."""
    try:
        parallel = Parallelism(**{**plan.parallel.model_dump(), **degrees})
        yield key, value, replace(plan, parallel=parallel, **fields)
    except PlanError:
        return
