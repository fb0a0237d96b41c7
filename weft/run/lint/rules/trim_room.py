"""Trimmed packets without memory."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.units import shortest_size
from weft.run.lint.plan import Plan, PlannedPort
from weft.run.lint.queue_bounds import shared_bytes
from weft.run.lint.rule import Finding, Rule
from weft.scenario import TrimmingSection
from weft.switch.daemon.config import DEFAULT_TRIM_RESERVED_BYTES


class TrimRoom(Rule):
    """Trimmed packets without memory."""

    name = "trim-room"
    when = (
        "the queue of trimmed packets has less memory than one of each other port of its switch needs: "
        "`trimming.reserved`, or, where ports share memory, what `buffer.reserved` and `buffer.alpha` leave it"
    )
    reason = "packets are trimmed when the port's memory is full, and then dropped for want of room"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        trimming = plan.options.trimming
        if not trimming.classes:
            return
        for each in plan.ports:
            needed_bytes = max(1, len(each.switch.ports) - 1) * trimming.size
            room_bytes = _room_bytes(each, trimming)
            if room_bytes >= needed_bytes:
                continue
            key, value = _more_room(plan, max(DEFAULT_TRIM_RESERVED_BYTES, needed_bytes), 2 * needed_bytes)
            yield self.finding(
                key,
                f"trimmed packets have {room_bytes} B at {each.name}, and one of each other port takes "
                f"{needed_bytes} B, so they are dropped after all",
                {key: value},
            )
            return


def _room_bytes(planned: PlannedPort, trimming: TrimmingSection) -> int:
    """Return what the queue of trimmed packets may take at most."""
    buffer, queue = planned.switch.buffer, trimming.queue
    if buffer is None:
        return trimming.reserved
    alpha = buffer.alpha[queue]
    return buffer.reserved_bytes[queue] + int(shared_bytes(planned.switch) * alpha / (1 + alpha))


def _more_room(plan: Plan, own_bytes: int, shared: int) -> tuple[str, object]:
    """Return the key that gives the queue more memory, and its value, given what is ample of a port's or switch's."""
    buffer, queue = plan.options.buffer, plan.options.trimming.queue
    if all(each.switch.buffer is None for each in plan.ports):
        return "trimming.reserved", shortest_size(own_bytes)
    kept = {number: shortest_size(size) for number, size in enumerate(buffer.reserved_by_class) if size}
    return "buffer.reserved", kept | {queue: shortest_size(shared)}
