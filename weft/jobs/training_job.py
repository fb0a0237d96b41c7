"""A training step as a `Job`: the programs of the pipeline stages, and the members of groups."""

from __future__ import annotations

from dataclasses import replace

from weft.jobs.compute_variation import ComputeVariation
from weft.jobs.expert_routing import Routing
from weft.jobs.program_writer import GroupKind, StagePeer
from weft.jobs.stage_operations import stage_operations
from weft.jobs.training_plan import PlanError, TrainingPlan
from weft.traffic.jobs import CollectiveCall, Group, Job, Operations, RankPart


def training_job(plan: TrainingPlan, variation: ComputeVariation | None = None, name: str = "training step") -> Job:
    """Return the job of a step. Ranks of a stage share their operations unless compute times have jitter.

    Raises PlanError for a straggler outside the job's ranks.
    """
    variation = variation or ComputeVariation()
    for rank in variation.stragglers:
        if not 0 <= rank < plan.parallel.rank_count:
            raise PlanError("stragglers", f"rank {rank}", valid=f"0 to {plan.parallel.rank_count - 1}")
    calls: dict[CollectiveCall, int] = {}
    groups: dict[tuple[GroupKind, tuple[int, ...]], int] = {}
    parts: list[RankPart] = []
    for stage in range(plan.parallel.pipeline):
        sizes = group_sizes(plan, stage)
        programs = [stage_operations(plan, stage, sizes, calls, member) for member in range(_program_count(plan))]
        for rank in plan.parallel.stage_ranks(stage):
            operations, peers = programs[plan.parallel.expert_member(rank) % len(programs)]
            keys = [(kind, group_of(plan, kind, rank)) for kind in sizes]
            parts.append(
                RankPart(
                    _with_jitter(operations, variation, rank),
                    tuple(peer.rank(plan.parallel, rank) for peer in peers),
                    tuple(groups.setdefault(key, len(groups)) for key in keys),
                    variation.stragglers.get(rank, 1.0),
                    variation.communication_share,
                )
            )
    named = tuple(Group(f"{kind.value} of rank {ranks[0]}", ranks) for kind, ranks in groups)
    return Job(name, tuple(parts), named, tuple(calls))


def pipeline_job(plan: TrainingPlan) -> Job:
    """Return a job of one rank per stage without collectives: the ideal step, without stragglers or skew."""
    plan = replace(plan, routing=Routing())
    parts = []
    for stage in range(plan.parallel.pipeline):
        operations, peers = stage_operations(plan, stage, group_sizes={}, calls={})
        parts.append(RankPart(operations, tuple(peer.stage for peer in peers if isinstance(peer, StagePeer))))
    return Job("pipeline", tuple(parts))


def group_sizes(plan: TrainingPlan, stage: int) -> dict[GroupKind, int]:
    """Return the size of each kind of group that a stage's ranks are in, in order of slots; at least 2."""
    rank = plan.parallel.stage_ranks(stage)[0]
    kinds = [GroupKind.TENSOR, GroupKind.CONTEXT, GroupKind.DATA]
    if plan.model.experts:
        is_direct = plan.routing.hosts_per_token is None
        by_host = [GroupKind.EXPERT_ACROSS_HOSTS, GroupKind.EXPERT_WITHIN_HOST]
        if plan.routing.is_balanced:
            kinds += [GroupKind.EXPERT] if is_direct else by_host
        kinds.append(GroupKind.EXPERT_DATA)
    if plan.model.is_gpt and stage in (0, plan.parallel.pipeline - 1):
        kinds.append(GroupKind.EMBEDDING)
    sizes = {kind: len(group_of(plan, kind, rank)) for kind in kinds}
    return {kind: size for kind, size in sizes.items() if size > 1}


def collectives_of(plan: TrainingPlan, kind: GroupKind) -> tuple[str, ...]:
    """Return the collectives that groups of a kind call."""
    match kind.category:
        case "tensor":
            return ("allgather", "reducescatter") if plan.parallel.sequence else ("allreduce",)
        case "context":
            return ("allgather", "reducescatter")
        case "data":
            return ("allgather", "reducescatter") if plan.parallel.zero else ("allreduce",)
        case "expert":
            return ("alltoall",)
    return ("allreduce",)


def called_algorithms(plan: TrainingPlan) -> dict[tuple[str, str], set[tuple[int, ...]]]:
    """Return the groups that call collectives with algorithms named in the plan, by category and collective."""
    found: dict[tuple[str, str], set[tuple[int, ...]]] = {}
    for stage in range(plan.parallel.pipeline if plan.algorithms else 0):
        for kind in group_sizes(plan, stage):
            if kind.category in plan.algorithms:
                groups = {group_of(plan, kind, rank) for rank in plan.parallel.stage_ranks(stage)}
                for collective in collectives_of(plan, kind):
                    found.setdefault((kind.category, collective), set()).update(groups)
    return found


def group_of(plan: TrainingPlan, kind: GroupKind, rank: int) -> tuple[int, ...]:
    """Return the ranks in a rank's group of this kind, in order."""
    parallel = plan.parallel
    match kind:
        case GroupKind.TENSOR:
            return parallel.tensor_group(rank)
        case GroupKind.CONTEXT:
            return parallel.context_group(rank)
        case GroupKind.DATA:
            return parallel.data_group(rank)
        case GroupKind.EXPERT:
            return parallel.expert_group(rank)
        case GroupKind.EXPERT_DATA:
            return parallel.expert_data_group(rank)
        case GroupKind.EMBEDDING:
            return tuple(dict.fromkeys(parallel.end_stages_group(rank)))
    local, members = plan.expert_ranks_per_host, parallel.expert_group(rank)
    host, place = divmod(parallel.expert_member(rank), local)
    if kind is GroupKind.EXPERT_ACROSS_HOSTS:
        return members[place::local]
    return members[host * local : (host + 1) * local]


def _program_count(plan: TrainingPlan) -> int:
    """Return how many programs a stage has: one, unless ranks that share experts send different messages."""
    return 1 if plan.model.experts is None or plan.routing.is_balanced else plan.parallel.expert


def _with_jitter(operations: Operations, variation: ComputeVariation, rank: int) -> Operations:
    """Return the operations with jitter in their durations; other columns are shared."""
    durations_ps = variation.with_jitter(rank, operations.duration_ps)
    if durations_ps is operations.duration_ps:
        return operations
    return replace(operations, duration_ps=durations_ps)
