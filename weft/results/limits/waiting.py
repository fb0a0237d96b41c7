"""Ranks that wait for other ranks: bubbles of a pipeline, and stalls before collectives."""

from __future__ import annotations

from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class Waiting(LimitKind):
    """The time in which ranks have nothing to compute or to send."""

    name = "waiting"
    figures = "parts of steps of training jobs and of jobs from traces: `bubble_ps`, `stall_ps`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        steps = evidence.steps
        if steps is None or not steps.bubble_ps + steps.stall_ps:
            return None
        bubbles, stalls = (evidence.step_share(part_ps) for part_ps in (steps.bubble_ps, steps.stall_ps))
        sentence = (
            f"ranks that wait for other ranks, {percent(bubbles + stalls)} of the step (bubbles {percent(bubbles)}, "
            f"stalls {percent(stalls)})"
        )
        return Limit(self.name, sentence, bubbles + stalls)
