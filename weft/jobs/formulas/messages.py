"""Message sizes that ranks exchange for a micro-batch, a layer, or a step."""

from __future__ import annotations

from weft.jobs.formulas.parameters import rank_share, unit_parameters
from weft.jobs.training_plan import TrainingPlan


def activation_bytes(plan: TrainingPlan) -> int:
    """Return the bytes of a micro-batch between layers: b·s·h elements, undivided by tensor parallelism."""
    return plan.rank_tokens * plan.model.hidden * plan.precisions.bytes_of("activations")


def boundary_bytes(plan: TrainingPlan) -> int:
    """Return the bytes that a rank sends to the next stage: b·s·h elements, its share with sequence parallelism."""
    return activation_bytes(plan) // plan.parallel.sequence_shares


def key_value_bytes(plan: TrainingPlan) -> int:
    """Return the bytes of the keys and values of whole sequences that a rank's heads need.

    With latent attention they are gathered as latents, from which each rank projects its heads.
    """
    model, parallel = plan.model, plan.parallel
    tokens = plan.rank_tokens * parallel.context
    if latent := model.latent_attention:
        elements = latent.kv_rank + latent.rotary_head
    else:
        elements = model.key_value_heads * (model.query_size + model.value_size) // parallel.tensor
    return tokens * elements * plan.precisions.bytes_of("activations")


def routed_token_bytes(plan: TrainingPlan, precision: str) -> int:
    """Return the bytes of a token on its way to experts ("dispatch") or back ("activations")."""
    return plan.model.hidden * plan.precisions.bytes_of(precision)


def embedding_bytes(plan: TrainingPlan) -> int:
    """Return the gradient bytes of the embedding that a rank holds after the replicas' reduction.

    ZeRO 2 and 3 leave each replica its shard, 0 and 1 the tensor rank's whole part.
    """
    parallel = plan.parallel
    shares = parallel.tensor * (parallel.replicas if parallel.zero >= 2 else 1)
    elements = -(-plan.model.vocabulary * plan.model.hidden // shares)
    return elements * plan.precisions.bytes_of("gradients")


def unit_bytes(plan: TrainingPlan, unit: int, what: str) -> tuple[int, int]:
    """Return the bytes of a rank's weights or gradients of a unit, for dense parameters and for experts."""
    dense, experts = rank_share(plan, unit_parameters(plan, unit))
    element = plan.precisions.bytes_of(what)
    return dense * element, experts * element
