"""Floating-point operations of matrix products. All other operations are negligible in comparison."""

from __future__ import annotations

from dataclasses import dataclass

from weft.jobs.formulas.parameters import attention_matrices, feed_forward_matrices
from weft.jobs.models import Transformer
from weft.jobs.training_plan import TrainingPlan

BACKWARD = 2
"""Operations of a backward pass over a forward pass: gradients of inputs and of weights."""


@dataclass(frozen=True)
class LayerFlops:
    """Operations per token of a layer's forward pass, summed over all ranks that share the layer.

    Attributes:
        attention: projections of attention.
        scores: products of queries with keys and of scores with values, which have no weights.
        feed_forward: the feed-forward part, or router and shared experts.
        experts: the routed experts that compute the token.

    """

    attention: int
    scores: int
    feed_forward: int
    experts: int

    @property
    def total(self) -> int:
        """Sum of all parts."""
        return self.attention + self.scores + self.feed_forward + self.experts


def layer_flops(model: Transformer, layer: int, *, causal: bool = True, sequence: int | None = None) -> LayerFlops:
    """Return the operations per token of a layer's forward pass: two for each weight, and the scores.

    With `causal`, half the scores count: a token attends to earlier tokens, and kernels skip the others (Dao 2023,
    "FlashAttention-2", section 3.1). Without it all count, as in Narayanan et al. 2021, appendix: 24·B·s·h² + 4·B·s²·h
    for B sequences of the GPT family. `sequence` replaces the model's sequence length, in tokens.
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
    """Return the operations per token of the output matrix in a forward pass."""
    return 2 * model.hidden * model.vocabulary


def model_flops_per_token(model: Transformer, *, causal: bool = True) -> int:
    """Return the operations that training on one token needs: forward and backward, without recomputation.

    About six for each active parameter (Kaplan et al. 2020, section 2.1). Model FLOPs utilisation counts these.
    Chowdhery et al. 2022, appendix B, who introduced it, count all scores, as without `causal`; DeepSeek-AI 2025,
    table 4, gives both.
    """
    layers = sum(layer_flops(model, layer, causal=causal).total for layer in range(model.layers))
    return (1 + BACKWARD) * (layers + output_flops(model))


def step_flops(plan: TrainingPlan, *, causal: bool = True) -> int:
    """Return the operations of a step on all ranks, including recomputation.

    For the GPT family with full recomputation and all scores: 96·B·s·l·h²·(1 + s/(6·h) + V/(16·l·h)) (Narayanan et al.
    2021, equation 3).
    """
    again = 0
    for layer in range(plan.model.layers):
        flops = layer_flops(plan.model, layer, causal=causal)
        again += {"none": 0, "selective": flops.scores, "full": flops.total}[plan.recomputation]
    return plan.tokens * (model_flops_per_token(plan.model, causal=causal) + again)


def training_time_s(tokens: float, parameters: float, accelerators: int, flops_per_s: float) -> float:
    """Return how long training takes with full recomputation: 8·T·P/(n·X) (Narayanan et al. 2021, equation 4)."""
    return 8 * tokens * parameters / (accelerators * flops_per_s)
