"""ZB-H1: gradients of weights fill part of the bubble within the memory of 1F1B (Qi et al. 2023, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.pipeline_schedules.kind import Pass, PipelineSchedule, Step
from weft.jobs.pipeline_schedules.one_forward_one_backward import alternating


class ZeroBubble(PipelineSchedule):
    """1F1B with a split backward pass. Stage i computes gradients of weights i micro-batches late.

    So every stage holds the activations of as many micro-batches as the first stage of 1F1B.
    """

    name = "zero-bubble"
    splits_backward = True

    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""
        order = alternating(stages - 1 - stage, [(each, 0) for each in range(micro_batches)])
        found = []
        for step in order:
            found.append(step)
            if step.what is Pass.BACKWARD and step.micro_batch >= stage:
                found.append(Step(Pass.WEIGHT, step.micro_batch - stage))
        left = range(max(micro_batches - stage, 0), micro_batches)
        return [*found, *(Step(Pass.WEIGHT, each) for each in left)]
