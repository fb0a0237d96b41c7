"""Memory of a rank: weights, gradients, the optimizer's state, activations."""

from __future__ import annotations

from dataclasses import dataclass

from weft.jobs.formulas.parameters import rank_parameters
from weft.jobs.pipeline_schedules import most_held
from weft.jobs.training_plan import TrainingPlan

OPTIMIZER_BYTES = 12
"""Bytes of Adam's state per parameter in fp32: a copy of the weight and two moments (ZeRO, section 3.1: K = 12)."""
LOGIT_BYTES = 4
"""Bytes of a logit, in fp32 (Korthikanti et al. 2022, section 4.3)."""


@dataclass(frozen=True)
class Memory:
    """Memory of a rank by use, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int = 0

    def __add__(self, other: Memory) -> Memory:
        return Memory(*(mine + its for mine, its in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def total(self) -> int:
        """Sum of all uses."""
        return sum(vars(self).values())


def model_state(parameters: int, replicas: int, zero: int, weight_bytes: int = 2, gradient_bytes: int = 2) -> Memory:
    """Return the memory of parameters on each of their replicas (Rajbhandari et al. 2020, figure 1).

    Args:
        parameters: number of parameters of a replica.
        replicas: ranks that have the same parameters.
        zero: ZeRO stage: replicas shard the optimizer's state (1), gradients, too (2), weights, too (3).
        weight_bytes: bytes of a weight.
        gradient_bytes: bytes of a gradient.
    """
    shared = -(-parameters // replicas)
    return Memory(
        weights=weight_bytes * (shared if zero >= 3 else parameters),
        gradients=gradient_bytes * (shared if zero >= 2 else parameters),
        optimizer=OPTIMIZER_BYTES * (shared if zero >= 1 else parameters),
    )


def rank_memory(plan: TrainingPlan, stage: int) -> Memory:
    """Return the peak memory of a rank of a pipeline stage.

    Temporary buffers, allocations of libraries, and fragmentation are not counted.
    """
    parallel, precisions = plan.parallel, plan.precisions
    sizes = precisions.bytes_of("weights"), precisions.bytes_of("gradients")
    dense, experts = rank_parameters(plan, stage)
    parts = [part_activation_bytes(plan, stage, each) for each in range(parallel.virtual_stages)]
    return (
        model_state(dense, parallel.replicas, parallel.zero, *sizes)
        + model_state(experts, parallel.expert_replicas, parallel.zero, *sizes)
        + Memory(0, 0, 0, most_held(plan.stage_steps[stage], parts))
    )


def part_activation_bytes(plan: TrainingPlan, stage: int, part: int) -> int:
    """Return the activation bytes of a micro-batch that each rank keeps for the backward pass of a part of a stage.

    They include the layers' activations, the dropout mask behind the embedding, and at the model's end the inputs of
    norm and output, and the logits (Korthikanti et al. 2022, section 4.3).
    """
    model, parallel = plan.model, plan.parallel
    element = plan.precisions.bytes_of("activations")
    found = sum(layer_activation_bytes(plan, each) for each in plan.layers_of(stage, part))
    if plan.has_embedding(stage, part) and model.is_gpt:
        found += plan.rank_tokens * model.hidden // parallel.sequence_shares
    if plan.has_output(stage, part):
        found += plan.rank_tokens * 2 * element * model.hidden // parallel.sequence_shares
        found += plan.rank_tokens * LOGIT_BYTES * model.vocabulary // parallel.tensor
    return found


def layer_activation_bytes(plan: TrainingPlan, layer: int) -> int:
    """Return the activation bytes of a micro-batch that each rank keeps for a layer's backward pass.

    Korthikanti et al. 2022, table 2, for the GPT family: s·b·h·(10 + 24/t + 5·a·s/(h·t)), with sequence parallelism
    s·b·h/t·(34 + 5·a·s/h), with selective recomputation s·b·h/t·34, with full recomputation 2·s·b·h. Other families are
    counted in the same way, tensor by tensor: inputs of norms, of matrices and of the gate.
    """
    model, parallel = plan.model, plan.parallel
    element = plan.precisions.bytes_of("activations")
    if plan.recomputation == "full":
        return plan.rank_tokens * element * model.hidden
    # Elements and bytes of a token: sequence parallelism divides `shared`, tensor parallelism `split`.
    latent = model.latent_attention
    shared = 4 * model.hidden + (latent.query_rank + latent.kv_rank + latent.rotary_head if latent else 0)
    split = model.heads * (model.query_size + model.value_size)
    heads = model.heads if latent else model.key_value_heads
    split += heads * (model.query_size + model.value_size)
    inner = 2 if model.is_gpt else 3
    if experts := model.experts_of(layer):
        # Each chosen expert has a copy of the token, and its output is kept for the gradient of the router's weight.
        shared += 2 * experts.top_k * model.hidden
        split += inner * (experts.top_k + experts.shared) * experts.feed_forward
    else:
        split += inner * model.feed_forward
    masks = 2 * model.hidden if model.is_gpt else 0
    scores = 0
    if plan.recomputation == "none":
        # The softmax's output; with dropout its mask and output, too.
        scores = model.heads * model.sequence * (2 * element + 1 if model.is_gpt else element)
    return (
        plan.rank_tokens * (element * shared + masks) // parallel.sequence_shares
        + plan.rank_tokens * (element * split + scores) // parallel.tensor
    )
