"""1F1B: the fewest forward passes in advance that keep all stages busy (Narayanan et al. 2021, section 2.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.jobs.pipeline_schedules.kind import Pass, PipelineSchedule, Step


class OneForwardOneBackward(PipelineSchedule):
    """One forward pass for each later stage, then one forward and one backward pass in turn."""

    name = "1f1b"

    def steps(self, stage: int, stages: int, micro_batches: int, parts: int) -> Sequence[Step]:
        """Return a stage's passes in order."""
        return alternating(stages - 1 - stage, [(each, 0) for each in range(micro_batches)])


def alternating(
    in_advance: int, forward: Sequence[tuple[int, int]], backward: Sequence[tuple[int, int]] | None = None
) -> list[Step]:
    """Return passes in order: some forward passes in advance, then one forward and one backward pass in turn.

    Args:
        in_advance: forward passes before the first pair.
        forward: micro-batch and part of each forward pass, in order.
        backward: micro-batch and part of each backward pass; by default as `forward`.
    """
    ahead = min(in_advance, len(forward))
    ones = [Step(Pass.FORWARD, *each) for each in forward]
    others = [Step(Pass.BACKWARD, *each) for each in (forward if backward is None else backward)]
    pairs = [step for pair in zip(ones[ahead:], others, strict=False) for step in pair]
    return [*ones[:ahead], *pairs, *others[len(ones) - ahead :]]
