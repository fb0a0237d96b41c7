"""Headroom for less than what comes after a pause."""

from __future__ import annotations

from collections.abc import Iterator

from weft.engine import pfc_headroom_bytes
from weft.quantities.readable import format_rate, format_time
from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class PfcHeadroom(Rule):
    """Headroom for less than what comes after a pause."""

    name = "pfc-headroom"
    when = (
        "a given `pfc.headroom` is less than IEEE 802.1Qbb, annex O, has for the rate and delay of a link and the "
        "largest frame"
    )
    reason = "packets that are under way when a port asks for a pause find no memory, so a lossless class loses them"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        given_bytes = plan.options.pfc.headroom
        if given_bytes is None or not plan.options.pfc.classes:
            return
        needed = [
            (
                pfc_headroom_bytes(
                    rate_bps=each.port.rate_bps,
                    delay_ps=each.port.delay_ps,
                    frame_bytes=plan.any_frame_bytes,
                    response_ps=plan.options.switching.latency,
                ),
                each,
            )
            for each in plan.ports
        ]
        needed_bytes, each = max(needed, key=lambda found: found[0], default=(0, None))
        if each is None or given_bytes >= needed_bytes:
            return
        yield self.finding(
            "pfc.headroom",
            f"{given_bytes} B are less than the {needed_bytes} B that may come after a pause at {each.name} "
            f"({format_rate(each.port.rate_bps)}, {format_time(each.port.delay_ps)}, frames of "
            f"{plan.any_frame_bytes} B), so packets of a lossless class may be lost",
            {"pfc.headroom": shortest_size(needed_bytes)},
            "leave it out: the default is enough",
        )
