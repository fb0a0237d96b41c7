"""A step of training as a `Job`: the programs of the pipeline's stages, and who takes part in which group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from weft.jobs.parallelism import Parallelism
from weft.jobs.program_writer import GroupKind
from weft.jobs.stage_operations import stage_operations
from weft.jobs.training_plan import PlanError, TrainingPlan
from weft.traffic.jobs import CollectiveCall, Group, Job, Operations, RankPart
from weft.traffic.jobs.operations import MAX_DURATION_PS

_MEMBERS: dict[GroupKind, Callable[[Parallelism, int], tuple[int, ...]]] = {
    GroupKind.TENSOR: Parallelism.tensor_group,
    GroupKind.CONTEXT: Parallelism.context_group,
    GroupKind.DATA: Parallelism.data_group,
    GroupKind.EXPERT: Parallelism.expert_group,
    GroupKind.EXPERT_DATA: Parallelism.expert_data_group,
    GroupKind.EMBEDDING: Parallelism.end_stages_group,
}


@dataclass(frozen=True)
class ComputeVariation:
    """How computation differs between ranks and from time to time.

    Attributes:
        stragglers: of some ranks, by which factor all their computations are longer.
        jitter: standard deviation of the logarithm of a factor of every computation, drawn from a log-normal
            distribution of median 1.
        seed: of the factors.

    """

    stragglers: Mapping[int, float] = field(default_factory=dict)
    jitter: float = 0.0
    seed: int = 1


def training_job(
    plan: TrainingPlan, variation: ComputeVariation | None = None, name: str = "training step"
) -> Job:
    """Return the job of a step. Ranks of a stage share their operations, unless computation has jitter.

    Raises PlanError for a straggler that is no rank.
    """
    variation = variation or ComputeVariation()
    for rank in variation.stragglers:
        if not 0 <= rank < plan.parallel.rank_count:
            raise PlanError("stragglers", f"rank {rank} (valid: 0 to {plan.parallel.rank_count - 1})")
    calls: dict[CollectiveCall, int] = {}
    groups: dict[tuple[GroupKind, tuple[int, ...]], int] = {}
    parts: list[RankPart] = []
    for stage in range(plan.parallel.pipeline):
        sizes = group_sizes(plan, stage)
        operations, peers = stage_operations(plan, stage, sizes, calls)
        for rank in plan.parallel.stage_ranks(stage):
            keys = [(kind, _MEMBERS[kind](plan.parallel, rank)) for kind in sizes]
            parts.append(
                RankPart(
                    _with_jitter(operations, variation, rank),
                    tuple(plan.parallel.stage_peer(rank, peer) for peer in peers),
                    tuple(groups.setdefault(key, len(groups)) for key in keys),
                    variation.stragglers.get(rank, 1.0),
                )
            )
    named = tuple(Group(f"{kind.value} of rank {ranks[0]}", ranks) for kind, ranks in groups)
    return Job(name, tuple(parts), named, tuple(calls))


def pipeline_job(plan: TrainingPlan) -> Job:
    """Return the job of one rank per stage, without collectives: the ideal step of all ranks where none straggles."""
    programs = [
        stage_operations(plan, stage, group_sizes={}, calls={}) for stage in range(plan.parallel.pipeline)
    ]
    return Job("pipeline", tuple(RankPart(operations, peers) for operations, peers in programs))


def group_sizes(plan: TrainingPlan, stage: int) -> dict[GroupKind, int]:
    """Return the ranks of each kind of group that a stage's ranks are in, in order of the slots; none of one rank."""
    parallel = plan.parallel
    sizes = {
        GroupKind.TENSOR: parallel.tensor,
        GroupKind.CONTEXT: parallel.context,
        GroupKind.DATA: parallel.replicas,
    }
    if plan.model.experts:
        sizes |= {GroupKind.EXPERT: parallel.expert, GroupKind.EXPERT_DATA: parallel.expert_replicas}
    if plan.model.is_gpt and stage in (0, parallel.pipeline - 1):
        sizes[GroupKind.EMBEDDING] = min(parallel.pipeline, 2)
    return {kind: size for kind, size in sizes.items() if size > 1}


def _with_jitter(operations: Operations, variation: ComputeVariation, rank: int) -> Operations:
    """Return operations whose computations take other times; all else is shared."""
    if not variation.jitter:
        return operations
    generator = np.random.default_rng([variation.seed, rank])
    factors = np.exp(variation.jitter * generator.standard_normal(len(operations)))
    durations = np.minimum(np.rint(operations.duration_ps * factors), MAX_DURATION_PS).astype(np.int64)
    durations.flags.writeable = False
    return replace(operations, duration_ps=durations)
