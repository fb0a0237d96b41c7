"""Where measured processes run: one core each, on request before all ordinary processes."""

from __future__ import annotations

import os

REALTIME_PRIORITY = 20


def pinned(core: int, *, realtime: bool, many_threads: bool = False) -> list[str]:
    """The beginning of a command that runs on one core.

    `many_threads`: the process hands packets from thread to thread, so they must share the core in turns much
    shorter than the tenth of a second that a real-time thread may keep it.
    """
    priority = ["nice", "-n", "-20"] if many_threads else ["chrt", "--rr", str(REALTIME_PRIORITY)]
    return ["taskset", "--cpu-list", str(core), *(priority if realtime else [])]


def pin_this_process(core: int, *, realtime: bool) -> None:
    """Run this process, and the threads that it starts from now on, on one core."""
    os.sched_setaffinity(0, {core})
    if realtime:
        realtime_this_process()


def realtime_this_process() -> None:
    """Run this process, and the threads that it starts from now on, before all ordinary processes."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REALTIME_PRIORITY))
