"""A window, or a rate, of the transport that leaves links idle although hosts have data to send."""

from __future__ import annotations

from weft.quantities.readable import format_size
from weft.results.limits.evidence import Evidence
from weft.results.limits.kind import Limit, LimitKind, percent

_FULL = 0.8
"""A window of which so much is in flight on average is full: acknowledgements come for several packets at once."""


class Window(LimitKind):
    """The congestion control's window or rate."""

    name = "window"
    figures = (
        "of a run of one pattern without losses or pauses: flows' sizes and completion times, idle round-trip times of "
        "their paths, `made_by.effective.transport`, the busiest port's load"
    )

    def find(self, evidence: Evidence) -> Limit | None:
        """See LimitKind."""
        idle, paths = evidence.idle_share, evidence.paths
        if idle is None or paths is None or evidence.results.retransmissions or evidence.was_held:
            return None
        control = str(evidence.transport.get("congestion_control", "the congestion control"))
        in_flight = min(paths.in_flight_bytes, paths.product_bytes)
        needed = f"an idle path holds {format_size(paths.product_bytes, 3)}"
        window_bytes = _fixed_window_bytes(evidence)
        if window_bytes is not None and in_flight >= _FULL * window_bytes and window_bytes < paths.product_bytes:
            # A full window holds a flow all the time, also while packets of the last one are on their way.
            full = min(1.0, in_flight / window_bytes)
            sentence = f"{control}'s window of {format_size(window_bytes, 3)}, {percent(full)} full; {needed}"
            return Limit(self.name, sentence, full)
        sentence = (
            f"{control}, which keeps {format_size(in_flight, 3)} of a flow in flight; {needed}, and the busiest link "
            f"is idle for {percent(idle)} of the time"
        )
        return Limit(self.name, sentence, idle)


def _fixed_window_bytes(evidence: Evidence) -> float | None:
    """Return the window of a transport that never changes it, the largest of all planes; None for other transports."""
    if evidence.transport.get("congestion_control") != "fixed-window":
        return None
    parameters = (each.get("parameters") for each in evidence.transport_of_planes)
    windows = [each.get("window_bytes") for each in parameters if isinstance(each, dict)]
    return max((float(each) for each in windows if isinstance(each, int | float) and each > 0), default=None)
