"""Where measured processes run: one core each, on request before all ordinary processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

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


def measured_apart(measure: Callable[..., dict[str, float]], *arguments: Any, realtime: bool) -> dict[str, float]:
    """`measure(*arguments)` in a new process, whose peak of memory is its own. RuntimeError if it fails."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_measure_and_send, args=(there, measure, arguments, realtime))
    child.start()
    there.close()
    try:
        found: dict[str, float] = here.recv()
    except EOFError:
        raise RuntimeError(f"the process of {measure.__module__}{arguments} failed") from None
    finally:
        child.join()
    return found


def _measure_and_send(
    connection: Connection,
    measure: Callable[..., dict[str, float]],
    arguments: tuple[Any, ...],
    realtime: bool,
) -> None:
    if realtime:
        realtime_this_process()
    connection.send(measure(*arguments))
