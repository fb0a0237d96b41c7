"""Computation of a step, which no network shortens."""

from __future__ import annotations

from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class Compute(LimitKind):
    """The time in which ranks compute."""

    name = "compute"
    figures = "parts of steps of training and of jobs from traces: `compute_ps`, `exposed_ps`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        steps = evidence.steps
        if steps is None:
            return None
        share, exposed = (evidence.step_share(part_ps) for part_ps in (steps.compute_ps, steps.exposed_ps))
        sentence = f"compute, {percent(share)} of the step; communication is exposed for {percent(exposed)}"
        return Limit(self.name, sentence, share)
