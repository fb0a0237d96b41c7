"""A pause that comes after the memory is full."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.queue_bounds import shared_bytes
from weft.run.lint.rule import Finding, Rule


class PfcXoffMemory(Rule):
    """A pause that comes after the memory is full."""

    name = "pfc-xoff-memory"
    when = "`pfc.xoff` is more than all ports of a switch share"
    reason = (
        "one port takes all memory before it is paused; then all other ports, also of flows without congestion, "
        "are paused for want of memory"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        xoff_bytes = plan.options.pfc.xoff
        if xoff_bytes is None or not plan.ports:
            return
        least_bytes, each = min(((shared_bytes(each.switch), each) for each in plan.ports), key=lambda found: found[0])
        if xoff_bytes <= least_bytes:
            return
        fitting_bytes = least_bytes // max(1, len(each.switch.ports))
        yield self.finding(
            "pfc.xoff",
            f"{xoff_bytes} B are more than the {least_bytes} B that the ports of {each.switch.name} share, so one port "
            "takes all of it before it is paused, and all others are paused for want of memory",
            {"pfc.xoff": shortest_size(fitting_bytes)} if fitting_bytes > plan.any_frame_bytes else {},
            "raise buffer.capacity",
        )
