"""The time in which routes still led over links that had failed."""

from __future__ import annotations

import numpy as np

from weft.quantities.readable import format_time
from weft.recording.unions import unions
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent


class Control(LimitKind):
    """The controller, while it writes routes around failed links."""

    name = "control"
    figures = "`happened_ps` and `reprogrammed_ps` of `link_events`, `phases`"

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        events = [
            (each.happened_ps, each.reprogrammed_ps)
            for each in evidence.results.link_events
            if each.state == "down" and each.happened_ps is not None and each.reprogrammed_ps is not None
        ]
        if not events:
            return None
        starts, ends = (np.array(column, np.int64) for column in zip(*events, strict=True))
        begins, stops = unions(starts, ends)
        phases = evidence.results.phases
        runs = unions(np.array([each.start_ps for each in phases]), np.array([each.end_ps for each in phases]))
        waited_ps = sum(
            max(0, min(stop, end) - max(begin, start))
            for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)
            for start, end in zip(*(each.tolist() for each in runs), strict=True)
        )
        share = min(1.0, waited_ps / evidence.traffic_ps)
        took = format_time(waited_ps)
        sentence = f"the control plane: routes led over failed links for {took}, {percent(share)} of the time"
        return Limit(self.name, sentence, share)
