"""The plan of an inference job: everything that determines its computation, memory and traffic."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from weft.hints import did_you_mean
from weft.jobs.accelerators import PRECISION_BYTES, Precision
from weft.jobs.formulas.inference import stored_parameters
from weft.jobs.formulas.kv_cache import KvShare, kv_bytes_per_token_of_rank, kv_heads, kv_shares
from weft.jobs.inference.assignments import ASSIGNMENTS
from weft.jobs.inference.instances import DecodeInstances, PrefillInstances
from weft.jobs.inference.requests import Requests
from weft.jobs.models import Transformer
from weft.jobs.training_plan import PlanError
from weft.quantities.readable import counted, format_size
from weft.quantities.units import shown

KvTransfer = Literal["after-prefill", "by-layer"]
MAX_OPERATIONS = 5_000_000
"""Most operations of all ranks of a job; building so many takes about ten seconds."""


@dataclass(frozen=True)
class InferencePlan:
    """Requests, the instances that serve them, and how caches reach decode instances.

    Attributes:
        model: the model served.
        requests: in order of arrival.
        prefill: instances that compute prompts.
        decode: instances that generate outputs.
        precision: number format of weights and matrix products.
        kv_precision: number format of the KV cache.
        prefill_assignment: name of the policy that assigns requests to prefill instances.
        decode_assignment: name of the policy that assigns requests to decode instances.
        kv_transfer: whether a cache is sent whole when its prompt has been computed, or layer by layer as each has
            been computed (Patel et al. 2024, "Splitwise", section 4.2).
        prefix_caching: whether instances keep shared prefixes, so that they neither compute nor are sent them again.

    """

    model: Transformer
    requests: Requests
    prefill: PrefillInstances = field(default_factory=PrefillInstances)
    decode: DecodeInstances = field(default_factory=DecodeInstances)
    precision: Precision = "bf16"
    kv_precision: Precision = "bf16"
    prefill_assignment: str = "least-loaded"
    decode_assignment: str = "least-loaded"
    kv_transfer: KvTransfer = "after-prefill"
    prefix_caching: bool = False

    def __post_init__(self) -> None:
        """Raise PlanError for degrees that do not divide heads, for too little memory, and for too large a job."""
        for key, instances in (("prefill", self.prefill), ("decode", self.decode)):
            self._check_tensor(key, instances.tensor)
            if self.precision not in instances.accelerator.peak_tflops:
                valid = ", ".join(instances.accelerator.peak_tflops)
                raise PlanError("precision", f"{self.precision}, which the accelerator of {key} lacks", valid=valid)
        for key, name in (
            ("prefill_assignment", self.prefill_assignment),
            ("decode_assignment", self.decode_assignment),
        ):
            if name not in ASSIGNMENTS:
                raise PlanError(key, f"no assignment {shown(name)}; {did_you_mean(name, ASSIGNMENTS)}")
        self._check_size()
        prompts, outputs = self.requests.prompt_tokens, self.requests.output_tokens
        self._check_memory("prefill", self.prefill, int(prompts.max()))
        self._check_memory("decode", self.decode, int((prompts + outputs).max()))

    @property
    def rank_count(self) -> int:
        """Ranks of all instances; prefill ranks come first."""
        return self.prefill.rank_count + self.decode.rank_count

    @property
    def is_by_layer(self) -> bool:
        """Whether each layer's part of a cache is sent as a separate message."""
        return self.kv_transfer == "by-layer"

    @property
    def messages_per_share(self) -> int:
        """Messages from one rank to another for one request."""
        return self.model.layers if self.is_by_layer else 1

    @property
    def kv_element_bytes(self) -> int:
        """Bytes of an element of the KV cache."""
        return PRECISION_BYTES[self.kv_precision]

    @cached_property
    def shares(self) -> tuple[KvShare, ...]:
        """Heads that each rank of a prefill instance sends to each rank of a decode instance."""
        return tuple(kv_shares(self.model, self.prefill.tensor, self.decode.tensor))

    def message_bytes(self, heads: int, prompt_tokens: int) -> int:
        """Return the bytes of a message with `heads` heads of a prompt's cache."""
        layers = 1 if self.is_by_layer else self.model.layers
        return heads * kv_heads(self.model).elements * self.kv_element_bytes * layers * prompt_tokens

    def sent_bytes_per_token(self) -> int:
        """Return the bytes that all ranks of a prefill instance send for a token of a prompt."""
        heads = sum(share.heads for share in self.shares)
        return self.message_bytes(heads, 1) * self.messages_per_share

    def kv_capacity_tokens(self, instances: PrefillInstances) -> int:
        """Return how many tokens' caches fit in an instance's memory after the weights; below 0, these do not fit."""
        available = instances.accelerator.memory * instances.memory_share
        weights = stored_parameters(self.model, instances.tensor) * PRECISION_BYTES[self.precision]
        return int((available - weights) // self._kv_bytes(instances))

    def _kv_bytes(self, instances: PrefillInstances) -> int:
        return kv_bytes_per_token_of_rank(self.model, instances.tensor, self.kv_element_bytes)

    def _check_tensor(self, key: str, tensor: int) -> None:
        count = kv_heads(self.model).number
        valid = [
            each
            for each in range(1, self.model.heads + 1)
            if self.model.heads % each == 0 and (count % each == 0 or each % count == 0)
        ]
        if tensor not in valid:
            raise PlanError(
                f"{key}.tensor",
                f"{tensor} does not divide {self.model.heads} heads, {count} of keys and values, evenly",
                valid=valid,
            )

    def _check_size(self) -> None:
        # A timer and the computations of each prefill rank, and a send and a receive for each message.
        computations = 1 + (self.model.layers + 1 if self.is_by_layer else 1)
        per_request = self.prefill.tensor * computations + 2 * len(self.shares) * self.messages_per_share
        if len(self.requests) * per_request > MAX_OPERATIONS:
            raise PlanError(
                "requests",
                f"{len(self.requests):,} requests of {per_request:,} operations each",
                valid=f"up to {MAX_OPERATIONS // per_request:,} requests",
            )

    def _check_memory(self, key: str, instances: PrefillInstances, tokens: int) -> None:
        capacity = self.kv_capacity_tokens(instances)
        if capacity >= tokens:
            return
        weights = stored_parameters(self.model, instances.tensor) * PRECISION_BYTES[self.precision]
        raise PlanError(
            f"{key}.accelerator",
            f"a rank needs {format_size(weights)} for weights and {format_size(tokens * self._kv_bytes(instances))} "
            f"for the KV cache of the longest request, {counted(tokens, 'token')}; it may use "
            f"{format_size(instances.accelerator.memory * instances.memory_share)}",
            valid=f"more memory, a larger {key}.tensor, or shorter requests",
        )
