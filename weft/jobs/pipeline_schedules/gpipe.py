"""GPipe: all forward passes, then all backward passes (Huang et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.pipeline_schedules.kind import Pass, PipelineSchedule, Step


class GPipe(PipelineSchedule):
    """All forward passes, then all backward passes."""

    name = "gpipe"

    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""
        return [Step(what, each) for what in (Pass.FORWARD, Pass.BACKWARD) for each in range(micro_batches)]
