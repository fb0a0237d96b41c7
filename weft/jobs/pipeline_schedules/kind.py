"""Interface of pipeline schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, NamedTuple


class Pass(Enum):
    """Kind of pass over a part of the model."""

    FORWARD = "forward"
    BACKWARD = "backward"
    """Gradients of inputs and, unless the schedule splits the backward pass, of weights."""
    WEIGHT = "weight"
    """Gradients of weights, if the schedule splits the backward pass."""


class Step(NamedTuple):
    """A pass of a stage."""

    what: Pass
    micro_batch: int
    part: int = 0
    """Number of the part of the model among the stage's parts."""


class PipelineSchedule(ABC):
    """An order of the passes of every stage."""

    name: ClassVar[str]
    splits_backward: ClassVar[bool] = False
    """Whether gradients of weights are a separate pass."""
    has_parts: ClassVar[bool] = False
    """Whether a stage may have several parts of the model."""

    @abstractmethod
    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""

    def objection(self, stages: int, micro_batches: int, parts: int) -> str:
        """Return why these counts cannot be scheduled, with valid values; "" if they can."""
        if parts > 1 and not self.has_parts:
            return f"virtual_stages: {parts} with {self.name} (valid: 1, or schedule: interleaved)"
        return ""


def most_held(steps: Sequence[Step], sizes: Sequence[int] | None = None) -> int:
    """Return the peak of activations that a stage holds.

    A part's forward pass allocates them, the pass that computes gradients of weights frees them.

    Args:
        steps: passes of the stage, in order.
        sizes: size of each part's activations; 1 by default.
    """
    splits = any(step.what is Pass.WEIGHT for step in steps)
    last = Pass.WEIGHT if splits else Pass.BACKWARD
    held = most = 0
    for step in steps:
        held += ((step.what is Pass.FORWARD) - (step.what is last)) * (sizes[step.part] if sizes else 1)
        most = max(most, held)
    return most
