"""Operations and bytes of inference: for a prompt (prefill), and for an iteration of decode (a token per sequence)."""

from __future__ import annotations

from typing import NamedTuple

from weft.jobs.formulas.flops import layer_flops, output_flops
from weft.jobs.formulas.parameters import (
    Parameters,
    embedding_parameters,
    layer_parameters,
    output_parameters,
)
from weft.jobs.models import Transformer


class Work(NamedTuple):
    """Floating-point operations of an instance's ranks in total, and parameters that each rank reads from memory."""

    flops: float
    parameters: float


class DecodeFlops(NamedTuple):
    """Operations of an iteration, for each sequence and for each token of context."""

    per_sequence: int
    per_context_token: int


def prefill_layer(model: Transformer, layer: int, tokens: int, tensor: int, cached: int = 0) -> Work:
    """Return the work of a layer for `tokens` of a prompt behind `cached` ones, on `tensor` ranks.

    Two operations for each weight and token, and 2·tokens²·heads·head dimension for the causal half of the scores
    (Narayanan et al. 2021, appendix), twice as many for each pair of a token and a cached one.
    """
    # A token attends to half of the tokens on average, and to all cached ones: the causal half of so long a sequence.
    flops = tokens * layer_flops(model, layer, sequence=tokens + 2 * cached).total
    return Work(flops, layer_read(model, layer, tokens, tensor))


def output_work(model: Transformer, tokens: int, tensor: int) -> Work:
    """Return the work of the output matrix for `tokens`: only the last one of a prompt, all of an iteration."""
    return Work(tokens * output_flops(model), output_read(model, tensor))


def decode_flops(model: Transformer) -> DecodeFlops:
    """Return the operations of an iteration in all layers and the output matrix.

    Latent attention multiplies queries by latents and never expands these into keys and values: the matrices for that
    are absorbed into the query and output matrices (DeepSeek-V2, section 2.1.2).
    """
    per_sequence = output_flops(model)
    for layer, count in alike_layers(model).items():
        flops = layer_flops(model, layer)
        per_sequence += count * (flops.total - flops.scores)
    latent = model.latent_attention
    pair = 2 * latent.kv_rank + latent.rotary_head if latent else model.query_size + model.value_size
    return DecodeFlops(per_sequence, 2 * model.layers * model.heads * pair)


def layer_read(model: Transformer, layer: int, tokens: int, tensor: int) -> float:
    """Return the parameters of a layer that a rank reads to compute `tokens`.

    Only chosen routed experts are read: if each token chooses k of E evenly, n tokens leave an expert out with
    probability (1 - k/E)^n.
    """
    found = layer_parameters(model, layer)
    experts = model.experts_of(layer)
    if experts is None:
        return per_rank(found, tensor)
    chosen = 1 - (1 - experts.top_k / experts.count) ** tokens
    dense = Parameters(found.split, found.whole)
    return per_rank(dense, tensor) + found.experts * chosen / tensor


def decode_read(model: Transformer, sequences: int, tensor: int) -> float:
    """Return the parameters that a rank reads in an iteration of `sequences`, without the embedding."""
    layers = sum(layer_read(model, layer, sequences, tensor) * count for layer, count in alike_layers(model).items())
    return layers + output_read(model, tensor)


def output_read(model: Transformer, tensor: int) -> float:
    """Return the parameters of the last norm and the output matrix, even if the matrix is the embedding's."""
    matrix = Parameters(model.vocabulary * model.hidden)
    return per_rank(Parameters(matrix.split, output_parameters(model).whole), tensor)


def alike_layers(model: Transformer) -> dict[int, int]:
    """Return the number of layers without and with experts, in order, by the first layer of each kind."""
    dense = model.experts.dense_layers if model.experts else model.layers
    return {layer: count for layer, count in ((0, dense), (dense, model.layers - dense)) if count}


def stored_parameters(model: Transformer, tensor: int) -> float:
    """Return the parameters that each tensor rank holds."""
    found = embedding_parameters(model) + output_parameters(model)
    for layer, count in alike_layers(model).items():
        one = layer_parameters(model, layer)
        found += Parameters(one.split * count, one.whole * count, one.experts * count)
    return per_rank(found, tensor)


def per_rank(parameters: Parameters, tensor: int) -> float:
    """Return the share of the parameters that each of `tensor` ranks has."""
    return (parameters.split + parameters.experts) / tensor + parameters.whole
