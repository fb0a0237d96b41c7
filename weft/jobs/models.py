"""Transformers: the dimensions that determine parameters, computation and traffic, and published models by name."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from weft.errors import InvalidValueError
from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.quantities.readable import counted
from weft.quantities.section import Section

Size = Annotated[int, whole(1, 1 << 24)]
"""Size of a model dimension."""


class Experts(Section):
    """A mixture of experts, which replaces the feed-forward part of layers."""

    count: Annotated[int, whole(2, 1 << 16, example="64")]
    """Routed experts of a layer."""
    top_k: Annotated[int, whole(1, 1 << 10, example="4")]
    """Routed experts that compute a token."""
    feed_forward: Annotated[Size, Example("1408")]
    """Inner size of an expert."""
    shared: Annotated[int, whole(0, 1 << 10, example="1")] = 0
    """Shared experts, which compute every token, in addition to `count`."""
    dense_layers: Annotated[int, whole(0, 1 << 12, example="1")] = 0
    """Number of first layers with a feed-forward part instead of experts."""

    @model_validator(mode="after")
    def _check(self) -> Experts:
        if self.top_k > self.count:
            raise InvalidValueError(f"top_k: {self.top_k} of {self.count} experts", valid=f"1 to {self.count}")
        return self


class LatentAttention(Section):
    """Multi-head latent attention (DeepSeek-V2, section 2.1): latents of queries, and of keys and values."""

    query_rank: Annotated[Size, Example("1536")]
    """Size of the latent of the queries."""
    kv_rank: Annotated[Size, Example("512")]
    """Size of the latent of keys and values."""
    head: Annotated[Size, Example("128")]
    """Elements of a head's query and key without position."""
    rotary_head: Annotated[Size, Example("64")]
    """Elements of a head's query and key with rotary position; all heads share this part of the key."""
    value_head: Annotated[Size, Example("128")]
    """Elements of a head's value."""


class Transformer(Section):
    """A decoder-only transformer."""

    layers: Annotated[int, whole(1, 1 << 12, example="32")]
    """Number of layers."""
    hidden: Annotated[Size, Example("4096")]
    """Size of a token between layers."""
    heads: Annotated[int, whole(1, 1 << 12, example="32")]
    """Number of attention heads."""
    kv_heads: Annotated[int, whole(1, 1 << 12, example="8")] | None = None
    """Heads of keys and values (grouped-query attention); by default the same as `heads`."""
    head: Annotated[Size | None, Example("128")] = None
    """Size of a head; by default `hidden` over `heads`."""
    feed_forward: Annotated[Size, Example("11008")]
    """Inner size of the feed-forward part."""
    vocabulary: Annotated[Size, Example("32000")]
    """Number of different tokens."""
    sequence: Annotated[Size, Example("4096")]
    """Tokens of a sequence."""
    family: Literal["llama", "gpt"] = "llama"
    """`llama`: gated feed-forward part, RMS norms, rotary positions, no biases, a separate output matrix. `gpt`: two
    feed-forward matrices, layer norms, learned positions, biases, dropout, the embedding matrix as output."""
    experts: Experts | None = None
    """A mixture of experts."""
    latent_attention: LatentAttention | None = None
    """Attention through latents, in place of `kv_heads` and `head`."""

    @model_validator(mode="after")
    def _check(self) -> Transformer:
        if self.head is None and self.latent_attention is None and self.hidden % self.heads:
            raise InvalidValueError(
                f"hidden: {self.hidden} over {self.heads} heads",
                valid="a multiple, or give `head`, the size of one",
            )
        if self.heads % self.key_value_heads:
            raise InvalidValueError(
                f"kv_heads: {self.key_value_heads} for {self.heads} heads", valid=f"a divisor of {self.heads}"
            )
        if self.experts and self.experts.dense_layers > self.layers:
            raise InvalidValueError(
                f"experts.dense_layers: {self.experts.dense_layers} of {self.layers} layers",
                valid=f"0 to {self.layers}",
            )
        return self

    @property
    def key_value_heads(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def query_size(self) -> int:
        """Elements of a head's query and key."""
        latent = self.latent_attention
        return latent.head + latent.rotary_head if latent else self._head_size

    @property
    def value_size(self) -> int:
        """Elements of a head's value."""
        return self.latent_attention.value_head if self.latent_attention else self._head_size

    @property
    def _head_size(self) -> int:
        return self.hidden // self.heads if self.head is None else self.head

    @property
    def is_gpt(self) -> bool:
        """Whether layers have biases, dropout and two feed-forward matrices."""
        return self.family == "gpt"

    def experts_of(self, layer: int) -> Experts | None:
        """Return the experts of a layer, counted from 0; None if it has a feed-forward part."""
        return self.experts if self.experts and layer >= self.experts.dense_layers else None


MODELS: dict[str, Transformer] = {
    # Touvron et al. 2023, "LLaMA", table 2, and "Llama 2", table 1.
    "7B": Transformer(layers=32, hidden=4096, heads=32, feed_forward=11008, vocabulary=32000, sequence=4096),
    # Grattafiori et al. 2024, "The Llama 3 Herd of Models", table 3.
    "70B": Transformer(
        layers=80, hidden=8192, heads=64, kv_heads=8, feed_forward=28672, vocabulary=128256, sequence=8192
    ),
    "405B": Transformer(
        layers=126, hidden=16384, heads=128, kv_heads=8, feed_forward=53248, vocabulary=128256, sequence=8192
    ),
    # DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 4.2; without the multi-token prediction module.
    "DeepSeek-V3": Transformer(
        layers=61,
        hidden=7168,
        heads=128,
        feed_forward=18432,
        vocabulary=129280,
        sequence=4096,
        experts=Experts(count=256, top_k=8, feed_forward=2048, shared=1, dense_layers=3),
        latent_attention=LatentAttention(query_rank=1536, kv_rank=512, head=128, rotary_head=64, value_head=128),
    ),
    # Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1, with Megatron-LM's padded vocabulary.
    "GPT-3": Transformer(
        layers=96,
        hidden=12288,
        heads=96,
        feed_forward=49152,
        vocabulary=51200,
        sequence=2048,
        family="gpt",
    ),
}
"""Published models by name."""


def model_title(model: Transformer) -> str:
    """Return the name of a published model; of others the family, layers and hidden size."""
    named = next((name for name, known in MODELS.items() if known == model), "")
    return named or f"{model.family}, {counted(model.layers, 'layer')} of {model.hidden}"
