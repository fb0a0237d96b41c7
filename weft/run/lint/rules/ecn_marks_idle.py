"""ECN that marks where a single packet waits."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class EcnMarksIdle(Rule):
    """ECN that marks where a single packet waits."""

    name = "ecn-marks-idle"
    when = "a given `ecn.kmin` is below a full frame"
    reason = "a frame that waits for another one is marked, so senders slow down although no link is congested"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        kmin_bytes, kmax_bytes, frame_bytes = plan.options.ecn.kmin, plan.options.ecn.kmax, plan.frame_bytes
        if kmin_bytes is None or kmax_bytes is None or kmin_bytes >= frame_bytes:
            return
        settings = {"ecn.kmin": shortest_size(2 * frame_bytes)}
        if kmax_bytes <= 2 * frame_bytes:
            settings["ecn.kmax"] = shortest_size(8 * frame_bytes)
        yield self.finding(
            "ecn.kmin",
            f"{kmin_bytes} B are less than a frame of {frame_bytes} B, so ECN marks packets where a single frame waits "
            "and no link is congested",
            settings,
        )
