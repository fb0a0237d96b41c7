"""Parameters: of models, of layers, and of the ranks that share them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.jobs.models import Transformer
from weft.jobs.training_plan import TrainingPlan


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters, by what shares them.

    Attributes:
        split: which tensor parallelism divides.
        whole: which every tensor rank has: norms, projections to latents, routers.
        experts: of routed experts, which tensor and expert parallelism divide.

    """

    split: int = 0
    whole: int = 0
    experts: int = 0

    def __add__(self, other: Parameters) -> Parameters:
        return Parameters(self.split + other.split, self.whole + other.whole, self.experts + other.experts)

    @property
    def total(self) -> int:
        """All of them."""
        return self.split + self.whole + self.experts


def attention_matrices(model: Transformer) -> Parameters:
    """Return the elements of a layer's matrices of attention.

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
    # Biases of projections to heads are split with their columns; that of the output is not.
    return found + Parameters(_attention_width(model), model.hidden) if model.is_gpt else found


def feed_forward_matrices(model: Transformer, inner: int) -> int:
    """Return the elements of the matrices of a feed-forward part of an inner size (gated ones: Shazeer 2020)."""
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
    """Return the parameters behind the last layer; a model that outputs by its embedding has a norm alone there."""
    return Parameters(0 if model.is_gpt else model.vocabulary * model.hidden, _norm(model))


def model_parameters(model: Transformer) -> int:
    """Return all parameters of a model.

    Of the GPT family 12·l·h²·(1 + 13/(12·h) + (V + s)/(12·l·h)) and 2·h of the last norm (Narayanan et al. 2021,
    equation 2).
    """
    ends = embedding_parameters(model) + output_parameters(model)
    return ends.total + sum(layer_parameters(model, layer).total for layer in range(model.layers))


def active_parameters(model: Transformer) -> int:
    """Return the parameters that compute a token: of the routed experts, `top_k`."""
    idle = 0
    if experts := model.experts:
        one = feed_forward_parameters(model, experts.feed_forward).total
        idle = (model.layers - experts.dense_layers) * (experts.count - experts.top_k) * one
    return model_parameters(model) - idle


def part_parameters(plan: TrainingPlan, stage: int, part: int) -> Parameters:
    """Return the parameters of a part of a stage, of all ranks that share it."""
    return sum((unit_parameters(plan, each) for each in plan.units_of(stage, part)), Parameters())


def unit_parameters(plan: TrainingPlan, unit: int) -> Parameters:
    """Return the parameters of a unit, of all ranks that share it.

    Units are the layers from 0, before them the embedding (-1), behind them norm and output. If a model outputs by its
    embedding, the last of several stages has a copy of it, as in Megatron-LM.
    """
    model = plan.model
    if unit < 0:
        return embedding_parameters(model)
    if unit < model.layers:
        return layer_parameters(model, unit)
    is_copied = model.is_gpt and plan.parallel.pipeline > 1
    return output_parameters(model) + Parameters(model.vocabulary * model.hidden if is_copied else 0)


def rank_share(plan: TrainingPlan, parameters: Parameters) -> tuple[int, int]:
    """Return of parameters of a stage how many dense ones and how many of experts each of its ranks has, rounded up."""
    tensor = plan.parallel.tensor
    dense = -(-parameters.split // tensor) + parameters.whole
    return dense, -(-parameters.experts // (tensor * plan.parallel.expert))


def rank_parameters(plan: TrainingPlan, stage: int) -> tuple[int, int]:
    """Return how many dense parameters and how many of experts a rank of a stage has."""
    parts = (part_parameters(plan, stage, each) for each in range(plan.parallel.virtual_stages))
    return rank_share(plan, sum(parts, Parameters()))


def _attention_width(model: Transformer) -> int:
    return model.heads * model.query_size + model.key_value_heads * (model.query_size + model.value_size)


def _norm(model: Transformer) -> int:
    return model.hidden * (2 if model.is_gpt else 1)
