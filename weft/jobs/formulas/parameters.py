"""Parameter counts of models, layers, and the ranks that share them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.jobs.models import Transformer
from weft.jobs.training_plan import TrainingPlan


@dataclass(frozen=True)
class Parameters:
    """Parameter counts, by the parallelism that divides them.

    Attributes:
        split: divided by tensor parallelism.
        whole: held by every tensor rank: norms, projections to latents, routers.
        experts: routed experts, divided by tensor and expert parallelism.

    """

    split: int = 0
    whole: int = 0
    experts: int = 0

    def __add__(self, other: Parameters) -> Parameters:
        return Parameters(self.split + other.split, self.whole + other.whole, self.experts + other.experts)

    @property
    def total(self) -> int:
        """Sum of all parameters."""
        return self.split + self.whole + self.experts


def attention_matrices(model: Transformer) -> Parameters:
    """Return the elements of a layer's attention matrices.

    Sources: Vaswani et al. 2017, section 3.2.2; Ainslie et al. 2023 (grouped queries); DeepSeek-V2, section 2.1.
    """
    hidden, heads = model.hidden, model.heads
    output = heads * model.value_size * hidden
    if latent := model.latent_attention:
        queries = latent.query_rank * heads * model.query_size
        keys_and_values = latent.kv_rank * heads * (latent.head + latent.value_head)
        projections = hidden * (latent.query_rank + latent.kv_rank + latent.rotary_head)
        return Parameters(queries + keys_and_values + output, projections)
    return Parameters(hidden * _attention_width(model) + output)


def attention_parameters(model: Transformer) -> Parameters:
    """Return the parameters of a layer's attention, without the norm before it."""
    found = attention_matrices(model)
    if latent := model.latent_attention:
        return found + Parameters(0, latent.query_rank + latent.kv_rank)
    # Biases of projections to heads are split with their columns; the output's bias is not.
    return found + Parameters(_attention_width(model), model.hidden) if model.is_gpt else found


def feed_forward_matrices(model: Transformer, inner: int) -> int:
    """Return the matrix elements of a feed-forward part of an inner size (three matrices if gated: Shazeer 2020)."""
    return (2 if model.is_gpt else 3) * model.hidden * inner


def feed_forward_parameters(model: Transformer, inner: int) -> Parameters:
    """Return the parameters of a feed-forward part of an inner size, without the norm before it."""
    matrices = Parameters(feed_forward_matrices(model, inner))
    return matrices + Parameters(inner, model.hidden) if model.is_gpt else matrices


def layer_parameters(model: Transformer, layer: int) -> Parameters:
    """Return the parameters of a layer, counted from 0."""
    attention = attention_parameters(model) + Parameters(0, 2 * _norm(model))
    experts = model.experts_of(layer)
    if experts is None:
        return attention + feed_forward_parameters(model, model.feed_forward)
    one = feed_forward_parameters(model, experts.feed_forward)
    # DeepSeek-V3's router has a bias for each expert that balances its load (section 2.1.2).
    router = Parameters(0, (model.hidden + 1) * experts.count)
    shared = Parameters(one.split * experts.shared, one.whole * experts.shared)
    return attention + router + shared + Parameters(experts=experts.count * one.total)


def embedding_parameters(model: Transformer) -> Parameters:
    """Return the parameters before the first layer."""
    words = Parameters(model.vocabulary * model.hidden)
    return words + Parameters(0, model.sequence * model.hidden) if model.is_gpt else words


def output_parameters(model: Transformer) -> Parameters:
    """Return the parameters behind the last layer: only a norm if the output reuses the embedding."""
    return Parameters(0 if model.is_gpt else model.vocabulary * model.hidden, _norm(model))


def model_parameters(model: Transformer) -> int:
    """Return the number of parameters of a model.

    For the GPT family 12·l·h²·(1 + 13/(12·h) + (V + s)/(12·l·h)), plus 2·h for the last norm (Narayanan et al. 2021,
    equation 2).
    """
    ends = embedding_parameters(model) + output_parameters(model)
    return ends.total + sum(layer_parameters(model, layer).total for layer in range(model.layers))


def active_parameters(model: Transformer) -> int:
    """Return the number of parameters that compute a token: `top_k` of the routed experts, and all others."""
    idle = 0
    if experts := model.experts:
        one = feed_forward_parameters(model, experts.feed_forward).total
        idle = (model.layers - experts.dense_layers) * (experts.count - experts.top_k) * one
    return model_parameters(model) - idle


def part_parameters(plan: TrainingPlan, stage: int, part: int) -> Parameters:
    """Return the parameters of a part of a stage, summed over the ranks that share it."""
    return sum((unit_parameters(plan, each) for each in plan.units_of(stage, part)), Parameters())


def unit_parameters(plan: TrainingPlan, unit: int) -> Parameters:
    """Return the parameters of a unit, summed over the ranks that share it.

    Units are the embedding (-1), the layers from 0, then norm and output. If the output reuses the embedding, the last
    of several stages has a copy of it, as in Megatron-LM.
    """
    model = plan.model
    if unit < 0:
        return embedding_parameters(model)
    if unit < model.layers:
        return layer_parameters(model, unit)
    is_copied = model.is_gpt and plan.parallel.pipeline > 1
    return output_parameters(model) + Parameters(model.vocabulary * model.hidden if is_copied else 0)


def rank_share(plan: TrainingPlan, parameters: Parameters) -> tuple[int, int]:
    """Return how many of a stage's dense and expert parameters each of its ranks has, rounded up."""
    tensor = plan.parallel.tensor
    dense = -(-parameters.split // tensor) + parameters.whole
    return dense, -(-parameters.experts // (tensor * plan.parallel.expert))


def rank_parameters(plan: TrainingPlan, stage: int) -> tuple[int, int]:
    """Return how many dense and expert parameters a rank of a stage has."""
    parts = (part_parameters(plan, stage, each) for each in range(plan.parallel.virtual_stages))
    return rank_share(plan, sum(parts, Parameters()))


def _attention_width(model: Transformer) -> int:
    return model.heads * model.query_size + model.key_value_heads * (model.query_size + model.value_size)


def _norm(model: Transformer) -> int:
    return model.hidden * (2 if model.is_gpt else 1)
