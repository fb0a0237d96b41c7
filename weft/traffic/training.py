"""A step of data-parallel training: compute delays, and all-reduces of gradient buckets that overlap with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from weft.errors import InvalidValueError
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.lane_schedule import LaneSchedule
from weft.traffic.schedule_nodes import DATA, IMMEDIATE_INDEX_BITS, SCRATCH
from weft.traffic.schedules import CollectiveSpec

GRADIENT_COLLECTIVE = "allreduce"
"""The operation that data-parallel training applies to gradients."""
STEP_NEEDS_LANES = "a training step"
"""For `lanes_for` of `Collective.check`."""


@dataclass(frozen=True)
class Layer:
    """A layer of a model: how many gradients it has, and how long its passes take on every rank."""

    gradient_count: int
    forward_ps: int
    backward_ps: int


@dataclass(frozen=True)
class TrainingStep:
    """Forward pass, backward pass with concurrent all-reduces, optimizer.

    The backward pass goes through the layers from the last to the first. Gradients lie in a rank's data in the order in
    which it makes them. They are all-reduced in buckets of at least `bucket_bytes`, each as soon as its last layer is
    through and the bucket before it is reduced (Li et al., "PyTorch Distributed: Experiences on Accelerating Data
    Parallel Training", VLDB 2020, section 3.2.3). The optimizer begins when all buckets are reduced.
    """

    layers: tuple[Layer, ...]
    bucket_bytes: int
    optimizer_ps: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for a step without gradients, and for negative numbers."""
        numbers = [value for layer in self.layers for value in vars(layer).values()]
        if min([*numbers, self.bucket_bytes, self.optimizer_ps], default=0) < 0:
            raise ValueError(f"a training step with a negative number: {self}")
        if self.gradient_count == 0:
            raise InvalidValueError("a training step without gradients", valid="at least one layer that has some")

    @property
    def gradient_count(self) -> int:
        """Gradients of all layers."""
        return sum(layer.gradient_count for layer in self.layers)

    @property
    def compute_ps(self) -> int:
        """Return the time of a step without any communication."""
        return self.optimizer_ps + sum(layer.forward_ps + layer.backward_ps for layer in self.layers)

    def buckets(self, element_bytes: int) -> list[tuple[range, int]]:
        """Return the gradients of every bucket, and how many layers the backward pass has gone through when it is full.

        `element_bytes` is the size of a gradient.
        """
        ends = [(0, 0)]
        reached = 0
        for passed, layer in enumerate(reversed(self.layers), start=1):
            reached += layer.gradient_count
            if (reached - ends[-1][0]) * element_bytes >= max(self.bucket_bytes, element_bytes):
                ends.append((reached, passed))
        if reached > ends[-1][0]:
            ends.append((reached, len(self.layers)))
        return [(range(start, end), passed) for (start, _), (end, passed) in pairwise(ends)]


def training_step_schedule(step: TrainingStep, algorithm: str, spec: CollectiveSpec, rank: int) -> LaneSchedule:
    """Return what a rank does in a step; `spec.element_count` is the step's `gradient_count`.

    Raises ValueError for what the algorithm cannot do, and for buckets with more transfers than immediates.
    """
    if spec.element_count != step.gradient_count:
        raise ValueError(f"{spec.element_count} elements for {step.gradient_count} gradients")
    buffers = {DATA: spec.size_bytes, SCRATCH: 0}
    schedule = LaneSchedule(rank, buffers, spec.dtype, spec.operation, spec.run_tag, spec.divisor)
    done = schedule.add_delay(sum(layer.forward_ps for layer in step.layers))
    backward = []
    for layer in reversed(step.layers):
        done = schedule.add_delay(layer.backward_ps, [done])
        backward.append(done)
    all_reduce = COLLECTIVE_KINDS[GRADIENT_COLLECTIVE]
    buckets = step.buckets(spec.element_bytes)
    transfers_each = (1 << IMMEDIATE_INDEX_BITS) // len(buckets)
    reduced: list[int] = []
    for number, (gradients, passed) in enumerate(buckets):
        part = all_reduce.schedule(algorithm, replace(spec, element_count=len(gradients)), rank)
        if not isinstance(part, LaneSchedule):
            raise ValueError(f"{algorithm} has no lanes, which {STEP_NEEDS_LANES} needs")
        if part.native.transfer_limit > transfers_each:
            raise ValueError(f"a bucket has more than {transfers_each} transfers (use larger pieces or buckets)")
        begin = schedule.add_delay(0, [backward[passed - 1], *reduced])
        bucket = schedule.append(part, gradients.start, number * transfers_each, [begin])
        reduced = [schedule.add_delay(0, [begin, bucket])]
    schedule.add_delay(step.optimizer_ps, [*reduced, done])
    return schedule
