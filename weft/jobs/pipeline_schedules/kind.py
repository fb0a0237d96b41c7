"""What every pipeline schedule says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, NamedTuple


class Pass(Enum):
    """Which pass over a part of the model."""

    FORWARD = "forward"
    BACKWARD = "backward"
    """Gradients of inputs and, unless the schedule splits the pass, of weights."""
    WEIGHT = "weight"
    """Gradients of weights, of a schedule that splits the backward pass."""


class Step(NamedTuple):
    """A pass of a stage."""

    what: Pass
    micro_batch: int
    part: int = 0
    """Of the stage's parts of the model."""


class PipelineSchedule(ABC):
    """An order of the passes of every stage."""

    name: ClassVar[str]
    splits_backward: ClassVar[bool] = False
    """Whether gradients of weights are a pass of their own."""
    has_parts: ClassVar[bool] = False
    """Whether a stage may have several parts of the model."""

    @abstractmethod
    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""

    def objection(self, stages: int, micro_batches: int, parts: int) -> str:
        """Return what cannot be scheduled and what is valid, "" if all can."""
        if parts > 1 and not self.has_parts:
            return f"virtual_stages: {parts} with {self.name} (valid: 1, or schedule: interleaved)"
        return ""


def most_held(steps: Sequence[Step], sizes: Sequence[int] | None = None) -> int:
    """Return the most that a stage holds of activations, which a forward pass of a part makes.

    They are held until the pass that computes gradients of weights.

    Args:
        steps: of the stage.
        sizes: of each part's activations; by default they count 1.
    """
    splits = any(step.what is Pass.WEIGHT for step in steps)
    last = Pass.WEIGHT if splits else Pass.BACKWARD
    held = most = 0
    for step in steps:
        held += ((step.what is Pass.FORWARD) - (step.what is last)) * (sizes[step.part] if sizes else 1)
        most = max(most, held)
    return most
