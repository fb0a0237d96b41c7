"""A NIC that sends PAUSE frames without end, and the PFC watchdog against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.bench.setup import Setup
from weft.bench.variants import Changes

WITHOUT_WATCHDOG: Changes = {"pfc.watchdog": None}


@dataclass(frozen=True)
class StormTimes:
    """Times of a trial: how long traffic runs, when the storm begins and ends, and the times of the watchdog."""

    traffic_ps: int
    begin_ps: int
    end_ps: int
    watchdog_ps: int

    @property
    def watchdog(self) -> Changes:
        """Return the changes that give every switch a watchdog."""
        watched = f"{self.watchdog_ps}ps"
        return {"pfc.watchdog": {"detection_time": watched, "restoration_time": watched}}

    def event(self, setup: Setup, rank: int) -> dict[str, Any]:
        """Return the event that a rank's NIC storms."""
        host = setup.subject.fabric.hosts[rank].name
        return {"host": host, "state": "storming", "at": f"{self.begin_ps}ps", "until": f"{self.end_ps}ps"}
