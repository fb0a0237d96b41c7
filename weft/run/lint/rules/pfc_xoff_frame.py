"""A pause for a single frame."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class PfcXoffFrame(Rule):
    """A pause for a single frame."""

    name = "pfc-xoff-frame"
    when = "`pfc.xoff` is below the largest frame"
    reason = (
        "each full frame pauses its sender, so a link without congestion waits for a pause and its end after "
        "every frame"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        xoff_bytes, frame_bytes = plan.options.pfc.xoff, plan.any_frame_bytes
        if xoff_bytes is None or xoff_bytes >= frame_bytes:
            return
        yield self.finding(
            "pfc.xoff",
            f"{xoff_bytes} B are less than a frame of {frame_bytes} B, so every full frame pauses its sender",
            {"pfc.xoff": shortest_size(16 * frame_bytes)},
        )
