"""Where measured processes run: one core each, on request before all ordinary processes."""

from __future__ import annotations

import os

REALTIME_PRIORITY = 20


def pinned(core: int, *, realtime: bool) -> list[str]:
    """The beginning of a command that runs on one core."""
    # Round robin: a switch with several threads on the core shares it among them.
    priority = ["chrt", "--rr", str(REALTIME_PRIORITY)] if realtime else []
    return ["taskset", "--cpu-list", str(core), *priority]


def pin_this_process(core: int, *, realtime: bool) -> None:
    """Run this process, and the threads that it starts from now on, on one core."""
    os.sched_setaffinity(0, {core})
    if realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REALTIME_PRIORITY))
