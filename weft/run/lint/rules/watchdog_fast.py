"""A PFC watchdog that takes congestion for a storm."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_US, shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class WatchdogFast(Rule):
    """A PFC watchdog that takes congestion for a storm."""

    name = "watchdog-fast"
    when = (
        "`pfc.watchdog.detection_time` is below the time that a port may be paused while all other ports of the far "
        "end send to one: what is above the threshold, headroom included, leaves by a share of that one"
    )
    reason = "packets of a lossless class are lost, or sent into full memory, in congestion without a broken NIC"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        watchdog, pause_ps = plan.options.pfc.watchdog, plan.longest_pause_ps
        if watchdog is None or watchdog.action == "alert" or watchdog.detection_time >= pause_ps:
            return
        yield self.finding(
            "pfc.watchdog.detection_time",
            f"{format_time(watchdog.detection_time)} are less than a pause lasts in congestion, "
            f"{format_time(pause_ps)}, so the watchdog finds storms where no NIC is broken",
            {"pfc.watchdog.detection_time": shortest_time(-(-2 * pause_ps // PS_PER_US) * PS_PER_US)},
        )
