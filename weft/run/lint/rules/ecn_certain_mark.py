"""Queues that are full before ECN marks every packet."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_rate
from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.queue_bounds import queue_bounds
from weft.run.lint.rule import Finding, Rule


class EcnCertainMark(Rule):
    """Queues that are full before ECN marks every packet."""

    name = "ecn-certain-mark"
    when = "a given `ecn.kmax` is deeper than a queue that drops, but its `ecn.kmin` is not"
    reason = "a queue drops before each of its packets is marked, so some senders never learn of the congestion"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        kmin_bytes, kmax_bytes = plan.options.ecn.kmin, plan.options.ecn.kmax
        if kmin_bytes is None or kmax_bytes is None:
            return
        frame_bytes, data_classes = plan.any_frame_bytes, plan.options.scheduling.data_classes
        bounds = [
            (bound.most_bytes, each, bound)
            for each in plan.ports
            for bound in queue_bounds(each.switch, each.port, data_classes)
            if bound.loses and kmin_bytes + frame_bytes <= bound.most_bytes < kmax_bytes + frame_bytes
        ]
        if not bounds:
            return
        most_bytes, each, bound = min(bounds, key=lambda found: found[0])
        lower_bytes = most_bytes - frame_bytes
        yield self.finding(
            "ecn.kmax",
            f"ports of {format_rate(each.port.rate_bps)}, such as {each.name}, drop packets at {most_bytes} B, before "
            f"every packet is marked, above {kmax_bytes} B",
            {"ecn.kmax": shortest_size(lower_bytes)} if lower_bytes > kmin_bytes else {},
            f"raise {bound.keys}",
        )
