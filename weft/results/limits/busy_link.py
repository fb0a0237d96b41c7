"""Common part of limits by busy links."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from weft.quantities.readable import counted
from weft.results.limits.evidence import Bottleneck, Evidence, Side
from weft.results.limits.kind import Limit, LimitKind, percent


class BusyLink(LimitKind):
    """The busiest ports of a run, if they are on one side. `side`: which."""

    side: ClassVar[Side]

    @staticmethod
    def others(found: Bottleneck, where: str) -> str:
        """Return how many more ports are as busy, in words; empty for none."""
        return f" and {counted(found.count - 1, 'more link')} {where}" if found.count > 1 else ""

    @abstractmethod
    def subject(self, found: Bottleneck) -> str:
        """Return which ports they are, in words."""

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        found = evidence.bottleneck
        if found is None or found.side != self.side:
            return None
        sentence = f"{self.subject(found)}, {percent(found.share)} busy"
        if evidence.steps is None:
            return Limit(self.name, sentence, min(1.0, found.share), found.port)
        # What computation hides costs no time, however busy a link is meanwhile.
        exposed = evidence.step_share(evidence.steps.exposed_ps)
        sentence += f"; communication is exposed for {percent(exposed)} of the step"
        return Limit(self.name, sentence, min(1.0, found.share, exposed), found.port)
