"""A storm that ends before the PFC watchdog notices it."""

from __future__ import annotations

from collections.abc import Iterator

from weft.quantities.readable import format_time
from weft.quantities.units import shortest_time
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule


class WatchdogMissesStorm(Rule):
    """A storm that ends before the PFC watchdog notices it."""

    name = "watchdog-misses-storm"
    when = "a NIC is `storming` for less than `pfc.watchdog.detection_time`"
    reason = "the watchdog does nothing, and the run shows the storm alone"

    def find(self, plan: Plan) -> Iterator[Finding]:
        """See Rule."""
        watchdog = plan.options.pfc.watchdog
        if watchdog is None:
            return
        for index, event in enumerate(plan.options.events):
            if not event.is_storm or event.until is None:
                continue
            lasts_ps = event.until - (event.at or 0)
            if lasts_ps > watchdog.detection_time:
                continue
            yield self.finding(
                f"events[{index}].until",
                f"the NIC of {event.host} is storming for {format_time(lasts_ps)}, no longer than the watchdog takes "
                f"to notice, {format_time(watchdog.detection_time)}",
                {f"events[{index}].until": shortest_time((event.at or 0) + 4 * watchdog.detection_time)},
                "lower pfc.watchdog.detection_time",
            )
