"""How long an instance computes: operations over the rate reached, or bytes over bandwidth if that is longer.

Iterations of decoding are bound by memory: each reads all weights and the KV caches of all its requests (Patel et al.
2024, "Splitwise", section 3; Zhong et al. 2024, "DistServe", section 3 and appendix A). Communication between the ranks
of an instance is not modelled separately. The accelerator's `efficiency` accounts for it where arithmetic bounds a
computation, `memory_efficiency` where memory does, as in decode; with its default of 1, communication is free.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from weft.jobs.accelerators import PRECISION_BYTES, Precision
from weft.jobs.formulas.inference import (
    DecodeFlops,
    Work,
    alike_layers,
    decode_flops,
    decode_read,
    output_work,
    prefill_layer,
)
from weft.jobs.formulas.kv_cache import kv_bytes_per_token_of_rank
from weft.jobs.inference.instances import PrefillInstances
from weft.jobs.inference.requests import LONGEST_PS
from weft.jobs.models import Transformer
from weft.quantities.units import PS_PER_S

_KEPT = 4096


class InstanceTimes:
    """Durations of an instance's computations, in ps."""

    def __init__(
        self, model: Transformer, instances: PrefillInstances, precision: Precision, kv_element_bytes: int
    ) -> None:
        self._model, self._tensor = model, instances.tensor
        self._weight_bytes = PRECISION_BYTES[precision]
        self._kv_bytes = kv_bytes_per_token_of_rank(model, instances.tensor, kv_element_bytes)
        self._flops_per_s = instances.accelerator.flops_per_s(precision) * instances.tensor
        self._bytes_per_s = instances.accelerator.memory_bytes_per_s
        self._read = lru_cache(_KEPT)(lambda sequences: decode_read(model, sequences, instances.tensor))
        self.layers_ps = lru_cache(_KEPT)(self._layers_ps)

    def prefill_ps(self, tokens: int, cached: int = 0) -> int:
        """Return how long `tokens` of a prompt behind `cached` ones take."""
        return sum(self.layers_ps(tokens, cached)) + self.output_ps

    def _layers_ps(self, tokens: int, cached: int = 0) -> tuple[int, ...]:
        """Return how long `tokens` of a prompt behind `cached` ones take in each layer."""
        found: list[int] = []
        for layer, count in alike_layers(self._model).items():
            found += [self._of(prefill_layer(self._model, layer, tokens, self._tensor, cached))] * count
        return tuple(found)

    @cached_property
    def output_ps(self) -> int:
        """How long the output matrix takes for a prompt's last token."""
        return self._of(output_work(self._model, 1, self._tensor))

    def iterations_ps(self, sequences: int, context_tokens: int, count: int) -> NDArray[np.int64]:
        """Return the times of consecutive iterations that add a token to each sequence, each at most LONGEST_PS.

        Args:
            sequences: sequences in the batch.
            context_tokens: tokens of all sequences together, before the first iteration.
            count: number of iterations.
        """
        contexts = context_tokens + sequences * np.arange(count)
        operations = sequences * self._decode_flops.per_sequence
        computing_s = (operations + self._decode_flops.per_context_token * contexts) / self._flops_per_s
        read_bytes = self._read(sequences) * self._weight_bytes + self._kv_bytes * contexts
        times_ps = np.maximum(computing_s, read_bytes / self._bytes_per_s) * PS_PER_S
        return np.asarray(np.rint(np.minimum(times_ps, LONGEST_PS)), np.int64)

    @cached_property
    def _decode_flops(self) -> DecodeFlops:
        return decode_flops(self._model)

    def _of(self, work: Work) -> int:
        read_s = work.parameters * self._weight_bytes / self._bytes_per_s
        return round(min(max(work.flops / self._flops_per_s, read_s) * PS_PER_S, LONGEST_PS))
