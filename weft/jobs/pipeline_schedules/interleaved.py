"""Interleaved 1F1B: stages have several parts of the model each (Narayanan et al. 2021, section 2.2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.pipeline_schedules.kind import PipelineSchedule, Step
from weft.jobs.pipeline_schedules.one_forward_one_backward import alternating


class Interleaved(PipelineSchedule):
    """1F1B over groups of micro-batches, one per stage; a group passes through one part after the other."""

    name = "interleaved"
    has_parts = True

    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""
        groups = range(0, micro_batches, stages)
        forward = [(first + each, part) for first in groups for part in range(parts) for each in range(stages)]
        backward = [(micro_batch, parts - 1 - part) for micro_batch, part in forward]
        in_advance = (stages - 1 - stage) * 2 + (parts - 1) * stages
        return alternating(in_advance, forward, backward)

    def objection(self, stages: int, micro_batches: int, parts: int) -> str:
        """Return why these counts cannot be scheduled, with valid values; "" if they can."""
        if micro_batches % stages:
            nearest = max(round(micro_batches / stages), 1) * stages
            return f"micro_batches: {micro_batches} with {stages} stages of an interleaved schedule (valid: {nearest})"
        return super().objection(stages, micro_batches, parts)
