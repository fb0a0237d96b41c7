"""Summary of a training step before the run: memory, operations, bytes, and the time without communication."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from weft.jobs.formulas.flops import model_flops_per_token
from weft.jobs.formulas.memory import Memory, rank_memory
from weft.jobs.formulas.parameters import active_parameters, model_parameters
from weft.jobs.traffic_bytes import sent_bytes
from weft.jobs.training_job import pipeline_job
from weft.jobs.training_plan import TrainingPlan
from weft.quantities.units import PS_PER_S
from weft.traffic.jobs import Job
from weft.traffic.jobs.ideal import ideal_times


@dataclass(frozen=True)
class PlanSummary:
    """Figures of a training step known before the run. The formulas are in `weft/jobs/formulas/`."""

    ranks: int
    """Number of ranks."""
    stages: int
    """Pipeline stages; the ranks of a stage are consecutive."""
    parameters: int
    """Parameters of the model."""
    active_parameters: int
    """Parameters that compute a token."""
    tokens: int
    """Tokens of a step, over all ranks."""
    model_flops: float
    """Operations that a step needs on all ranks, with the causal half of attention's scores, without recomputation."""
    peak_flops_per_s: float
    """Peak rate of all ranks' accelerators together."""
    memory_bytes: dict[str, int] = field(default_factory=dict)
    """Memory of a rank in the stage that needs most, by use: weights, gradients, optimizer, activations."""
    accelerator_memory_bytes: int = 0
    """Memory of an accelerator."""
    sent_bytes: dict[str, int] = field(default_factory=dict)
    """Bytes sent by category, in each for the rank that sends most."""
    ideal_ps: int = 0
    """Time of the step if communication took no time and no rank were slower."""
    all_scores_flops: float = 0.0
    """As `model_flops`, but with all of attention's scores, as many publications count; 0 in older files."""

    @property
    def ideal_utilisation(self) -> float:
        """Return model FLOPs utilisation at the ideal step time."""
        return self.utilisation(self.ideal_ps)

    def utilisation(self, step_ps: int) -> float:
        """Return model FLOPs utilisation: the step's operations over the accelerators' peak in `step_ps`."""
        return self.model_flops / (self.peak_flops_per_s * step_ps / PS_PER_S) if step_ps else 0.0

    def utilisation_with_all_scores(self, step_ps: int) -> float:
        """Return model FLOPs utilisation with all of attention's scores counted."""
        return self.all_scores_flops / (self.peak_flops_per_s * step_ps / PS_PER_S) if step_ps else 0.0

    def tokens_per_s(self, step_ps: int) -> float:
        """Return the tokens per second if a step takes `step_ps`."""
        return self.tokens * PS_PER_S / step_ps if step_ps else 0.0


def summary_of(plan: TrainingPlan, job: Job) -> PlanSummary:
    """Return the summary of a plan and the job made from it."""
    parallel, accelerator = plan.parallel, plan.accelerator
    return PlanSummary(
        ranks=parallel.rank_count,
        stages=parallel.pipeline,
        parameters=model_parameters(plan.model),
        active_parameters=active_parameters(plan.model),
        tokens=plan.tokens,
        model_flops=float(plan.tokens * model_flops_per_token(plan.model)),
        all_scores_flops=float(plan.tokens * model_flops_per_token(plan.model, causal=False)),
        peak_flops_per_s=parallel.rank_count * accelerator.peak_tflops[plan.precisions.compute] * 1e12,
        memory_bytes=vars(largest_memory(plan)[1]).copy(),
        accelerator_memory_bytes=accelerator.memory,
        sent_bytes=_most_sent(plan, job),
        ideal_ps=max(each.end_ps for each in ideal_times(pipeline_job(plan))),
    )


def largest_memory(plan: TrainingPlan) -> tuple[int, Memory]:
    """Return the pipeline stage that needs most memory per rank, and that memory."""
    memories = [(stage, rank_memory(plan, stage)) for stage in range(plan.parallel.pipeline)]
    return max(memories, key=lambda each: each[1].total)


def _most_sent(plan: TrainingPlan, job: Job) -> dict[str, int]:
    """Return the most bytes that a rank sends in each category; ranks of a stage send the same."""
    found = Counter[str]()
    for stage in range(plan.parallel.pipeline):
        found |= sent_bytes(job, plan.parallel.stage_ranks(stage)[0])
    return dict(sorted(found.items()))
