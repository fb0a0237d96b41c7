"""A pause that ends before it can be renewed."""

from __future__ import annotations

from collections.abc import Iterator

from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule

_QUANTUM_BYTES = 64
"""What a link sends in a quantum, 512 bit times (IEEE 802.1Qbb)."""


class PfcPauseShort(Rule):
    """A pause that ends before it can be renewed."""

    name = "pfc-pause-short"
    when = "`pfc.pause_quanta` last for less than two of the largest frames"
    reason = (
        "a pause is renewed after half of it, and the renewal may wait for a frame that is being sent; the far "
        "end goes on meanwhile, into headroom that is made for one pause"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        pfc, frame_bytes = plan.options.pfc, plan.any_frame_bytes
        if not pfc.classes or pfc.pause_quanta * _QUANTUM_BYTES >= 2 * frame_bytes:
            return
        yield self.finding(
            "pfc.pause_quanta",
            f"a pause of {pfc.pause_quanta} quanta lasts as long as {pfc.pause_quanta * _QUANTUM_BYTES} B take, less "
            f"than two frames of {frame_bytes} B, so it ends before its renewal comes",
            {"pfc.pause_quanta": 65535},
        )
