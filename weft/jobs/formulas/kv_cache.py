"""The KV cache: the keys and values kept for each token, and how tensor parallelism divides them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.jobs.models import Transformer


class KvHeads(NamedTuple):
    """Cache entries of a token in a layer: the number of heads, and elements of each."""

    number: int
    elements: int


def kv_heads(model: Transformer) -> KvHeads:
    """Return the cache entries of a token in a layer.

    A key and a value for each KV head (Ainslie et al. 2023). With latent attention, all heads share one latent of keys
    and values and one key part with rotary position (DeepSeek-V2, section 2.1.3, table 1).
    """
    if latent := model.latent_attention:
        return KvHeads(1, latent.kv_rank + latent.rotary_head)
    return KvHeads(model.key_value_heads, model.query_size + model.value_size)


def kv_bytes_per_token(model: Transformer, element_bytes: int) -> int:
    """Return the cache bytes of a token in all layers: 2·layers·KV heads·head dimension·bytes, or the latents' size."""
    heads = kv_heads(model)
    return model.layers * heads.number * heads.elements * element_bytes


def heads_of_rank(model: Transformer, tensor: int, rank: int) -> range:
    """Return which KV heads a tensor rank holds.

    Ranks divide the heads. With more ranks than heads, several ranks hold the same head, as in Megatron-LM and vLLM;
    so all ranks hold a latent.
    """
    count = kv_heads(model).number
    if tensor <= count:
        each = count // tensor
        return range(rank * each, (rank + 1) * each)
    head = rank * count // tensor
    return range(head, head + 1)


def kv_bytes_per_token_of_rank(model: Transformer, tensor: int, element_bytes: int) -> int:
    """Return the cache bytes of a token in all layers on each of `tensor` ranks."""
    heads = kv_heads(model)
    return model.layers * len(heads_of_rank(model, tensor, 0)) * heads.elements * element_bytes


class KvShare(NamedTuple):
    """KV heads that one prefill rank sends to one decode rank."""

    source: int
    destination: int
    heads: int


def kv_shares(model: Transformer, prefill_tensor: int, decode_tensor: int) -> Iterator[KvShare]:
    """Yield how many heads of a cache each prefill rank sends to each decode rank.

    Each decode rank gets each of its heads from one prefill rank. If several hold a head, decode ranks take it from
    them in turn; with more holders than decode ranks, some send nothing (vLLM's NIXL connector reads this way).
    """
    holders: dict[int, list[int]] = {}
    for rank in range(prefill_tensor):
        for head in heads_of_rank(model, prefill_tensor, rank):
            holders.setdefault(head, []).append(rank)
    taken: dict[int, int] = {}
    for destination in range(decode_tensor):
        counts: dict[int, int] = {}
        for head in heads_of_rank(model, decode_tensor, destination):
            turn = taken[head] = taken.get(head, -1) + 1
            source = holders[head][turn % len(holders[head])]
            counts[source] = counts.get(source, 0) + 1
        yield from (KvShare(source, destination, heads) for source, heads in counts.items())
