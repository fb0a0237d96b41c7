"""Trimming that cuts nothing, or headers that receivers need."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.switch.daemon.config import DEFAULT_TRIMMED_BYTES


class TrimSize(Rule):
    """Trimming that cuts nothing, or headers that receivers need."""

    name = "trim-size"
    when = "`trimming.size` is not below the largest frame of data, or below the headers that answers need"
    reason = (
        "no frame is longer, so none is cut: whole packets go to the queue of trimmed packets, which is made for a few "
        "bytes of each; or receivers cannot tell what was trimmed, and discard it"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        trimming, frame_bytes = plan.options.trimming, plan.frame_bytes
        if not trimming.classes:
            return
        header_bytes = plan.options.transport.kind.answered_header_bytes(plan.options.ip_version)
        if trimming.size >= frame_bytes:
            consequence = (
                f"{trimming.size} B are not below the largest frame, {frame_bytes} B, so nothing is cut off the "
                "packets that find no room"
            )
        elif trimming.size < header_bytes:
            consequence = (
                f"{trimming.size} B are less than the headers of data, {header_bytes} B, so receivers discard "
                "what is trimmed, and nobody answers"
            )
        else:
            return
        yield self.finding("trimming.size", consequence, {"trimming.size": f"{DEFAULT_TRIMMED_BYTES}B"})
