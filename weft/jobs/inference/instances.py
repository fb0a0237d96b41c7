"""Instances: accelerators of one host that serve the model together, either prompts or outputs."""

from __future__ import annotations

from typing import Annotated, Literal

from weft.jobs.accelerators import ACCELERATORS, Accelerator
from weft.quantities.definitions import number, whole
from weft.quantities.example import Example
from weft.quantities.section import Section
from weft.scenario.presets import Presets

AcceleratorOrName = Annotated[Accelerator, Presets("accelerator", lambda: ACCELERATORS)]


class PrefillInstances(Section):
    """Instances that compute prompts, one at a time, in the order of their arrival."""

    instances: Annotated[int, whole(1, 1 << 16)] = 1
    """Number of instances."""
    tensor: Annotated[int, whole(1, 1 << 10)] = 1
    """Ranks of an instance, which divide every layer; all are on one host."""
    accelerator: AcceleratorOrName = ACCELERATORS["H100"]
    """Accelerator of each rank."""
    memory_share: Annotated[float, number(0, 1, above=True, example="0.9"), Example("0.8")] = 0.9
    """Share of the accelerator's memory that weights and KV caches may take."""

    @property
    def rank_count(self) -> int:
        """Ranks of all instances."""
        return self.instances * self.tensor

    def ranks_of(self, instance: int, first: int = 0) -> range:
        """Return the ranks of an instance, given the first rank of all instances."""
        begin = first + instance * self.tensor
        return range(begin, begin + self.tensor)


class DecodeInstances(PrefillInstances):
    """Instances that generate outputs, for many requests at once."""

    batch: Annotated[int, whole(1, 1 << 20)] = 256
    """Most requests that an instance serves at once."""
    batching: Annotated[Literal["continuous", "static"], Example("static")] = "continuous"
    """`continuous`: requests join and leave between iterations. `static`: the next ones join when all of a batch are
    done."""
