"""A PFC watchdog that acts when senders have timed out."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class WatchdogSlow(Rule):
    """A PFC watchdog that acts when senders have timed out."""

    name = "watchdog-slow"
    when = "`pfc.watchdog.detection_time`, given or by default, is above the retransmission timeout"
    reason = (
        "in a storm other hosts' queue pairs time out, and in the end fail, before the watchdog acts: SONiC's default, "
        "200 ms, is for networks that run for days"
    )

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        watchdog, timeout_ps = plan.options.pfc.watchdog, plan.timeout_ps
        if watchdog is None or watchdog.detection_time <= timeout_ps:
            return
        settings = {"pfc.watchdog.detection_time": shortest_time(_between(plan.longest_pause_ps, timeout_ps))}
        if watchdog.restoration_time > timeout_ps:
            settings["pfc.watchdog.restoration_time"] = settings["pfc.watchdog.detection_time"]
        yield self.finding(
            "pfc.watchdog.detection_time",
            f"{format_time(watchdog.detection_time)} are more than the retransmission timeout, "
            f"{format_time(timeout_ps)}: in a storm other hosts' queue pairs time out, and after "
            f"{format_time(plan.patience_ps)} fail, and a run that ends sooner never sees the watchdog act",
            settings,
        )


def _between(pause_ps: int, timeout_ps: int) -> int:
    """Return a time that congestion does not reach and that leaves senders most of their timeout."""
    return min(max(2 * pause_ps, timeout_ps // 4), max(pause_ps, timeout_ps))
