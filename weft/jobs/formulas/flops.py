"""Floating-point operations of matrix products; all others are negligible beside them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.jobs.formulas.parameters import attention_matrices, feed_forward_matrices
from weft.jobs.models import Transformer
from weft.jobs.training_plan import TrainingPlan

BACKWARD = 2
"""A backward pass has twice the operations of a forward one: gradients of inputs, and of weights."""


@dataclass(frozen=True)
class LayerFlops:
    """Operations of a layer's forward pass per token, of all ranks that share it.

    Attributes:
        attention: of its projections.
        scores: of queries by keys and of scores by values, which have no weights.
        feed_forward: of the feed-forward part, or of router and shared experts.
        experts: of the routed experts that compute the token.

    """

    attention: int
    scores: int
    feed_forward: int
    experts: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.scores + self.feed_forward + self.experts


def layer_flops(
    model: Transformer, layer: int, *, causal: bool = True, sequence: int | None = None
) -> LayerFlops:
    """Return the operations of a layer's forward pass per token: two for each weight, and those of the scores.

    Of the scores, the half counts that the causal mask leaves: a token attends to those before it, and kernels skip the
    others (Dao 2023, "FlashAttention-2", section 3.1). Without `causal` all count, as in Narayanan et al. 2021,
    appendix: 24·B·s·h² + 4·B·s²·h for B sequences, of the GPT family. A sequence has as many tokens as the model says,
    unless it is given.
    """
    tokens = model.sequence if sequence is None else sequence
    scores = 2 * tokens * model.heads * (model.query_size + model.value_size)
    experts = model.experts_of(layer)
    if experts is None:
        dense, routed = feed_forward_matrices(model, model.feed_forward), 0
    else:
        one = feed_forward_matrices(model, experts.feed_forward)
        dense, routed = model.hidden * experts.count + experts.shared * one, experts.top_k * one
    return LayerFlops(
        attention=2 * attention_matrices(model).total,
        scores=scores // 2 if causal else scores,
        feed_forward=2 * dense,
        experts=2 * routed,
    )


def output_flops(model: Transformer) -> int:
    """Return the operations of the output matrix per token in a forward pass."""
    return 2 * model.hidden * model.vocabulary


def model_flops_per_token(model: Transformer, *, causal: bool = True) -> int:
    """Return the operations that training on a token needs: forward and backward, nothing computed twice.

    About six for each active parameter (Kaplan et al. 2020, section 2.1). These count for model FLOPs utilisation.
    Chowdhery et al. 2022, appendix B, who introduced that, count all scores, as without `causal`; DeepSeek-AI 2025,
    table 4, gives both.
    """
    layers = sum(layer_flops(model, layer, causal=causal).total for layer in range(model.layers))
    return (1 + BACKWARD) * (layers + output_flops(model))


def step_flops(plan: TrainingPlan, *, causal: bool = True) -> int:
    """Return the operations of a step of all ranks, with those of recomputation.

    With full recomputation and all scores, of the GPT family, 96·B·s·l·h²·(1 + s/(6·h) + V/(16·l·h)) (Narayanan et al.
    2021, equation 3).
    """
    again = 0
    for layer in range(plan.model.layers):
        flops = layer_flops(plan.model, layer, causal=causal)
        again += {"none": 0, "selective": flops.scores, "full": flops.total}[plan.recomputation]
    return plan.tokens * (model_flops_per_token(plan.model, causal=causal) + again)


def training_time_s(tokens: float, parameters: float, accelerators: int, flops_per_s: float) -> float:
    """Return how long training takes: 8·T·P/(n·X) with full recomputation (Narayanan et al. 2021, equation 4)."""
    return 8 * tokens * parameters / (accelerators * flops_per_s)
