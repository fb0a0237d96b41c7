"""Queues for fewer than two frames."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan
from weft.run.lint.queue_bounds import queue_bounds
from weft.run.lint.rule import Finding, Rule


class QueueFrames(Rule):
    """Queues for fewer than two frames."""

    name = "queue-frames"
    when = "a queue of data that drops holds fewer than two of the largest frames"
    reason = "two senders that share a port lose a packet whenever their frames come together"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        frame_bytes = plan.any_frame_bytes
        for each in plan.ports:
            for bound in queue_bounds(each.switch, each.port, plan.options.scheduling.data_classes):
                if not bound.loses or bound.most_bytes >= 2 * frame_bytes:
                    continue
                is_own = each.switch.buffer is None
                ample = {"fabric.queue_capacity": shortest_size(64 * frame_bytes)}
                yield self.finding(
                    "fabric.queue_capacity" if is_own else "buffer.capacity",
                    f"a queue of {each.name} holds {bound.most_bytes} B, fewer than two frames of {frame_bytes} B, so "
                    "a packet is lost whenever frames of two senders come together",
                    ample if is_own and plan.has_queue_capacity else {},
                    f"raise {bound.keys}",
                )
                return
