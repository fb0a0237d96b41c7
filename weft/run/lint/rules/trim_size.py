"""Trimming that cuts nothing."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.switch.daemon.config import DEFAULT_TRIMMED_BYTES


class TrimSize(Rule):
    """Trimming that cuts nothing."""

    name = "trim-size"
    when = "`trimming.size` is not below the largest frame of data"
    reason = (
        "no frame is longer, so none is cut: whole packets go to the queue of trimmed packets, which is made for a few "
        "bytes of each"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        trimming, frame_bytes = plan.options.trimming, plan.frame_bytes
        if not trimming.classes or trimming.size < frame_bytes:
            return
        yield self.finding(
            "trimming.size",
            f"{trimming.size} B are not below the largest frame, {frame_bytes} B, so nothing is cut off the packets "
            "that find no room",
            {"trimming.size": f"{DEFAULT_TRIMMED_BYTES}B"},
        )
