"""Network namespaces: finds and ends the processes inside them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path

from weft.system.processes import ProcessId, end

_ROUNDS = 10
"""Rounds of ending processes: a shell may start another program just before it ends."""


def network_namespace(pid: int | str = "self") -> int | None:
    """Return the inode of a process's network namespace; None if it has ended or belongs to another user."""
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return None


def processes_in(namespaces: Collection[int]) -> list[ProcessId]:
    """Return the processes in these network namespaces, except in this process's own namespace."""
    wanted = set(namespaces) - {network_namespace()}
    ids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()] if wanted else []
    found = [ProcessId.of(int(pid)) for pid in ids if network_namespace(pid) in wanted]
    return [process for process in found if process is not None]


def end_all_in(namespaces: Collection[int], patience_s: float = 1.0) -> list[ProcessId]:
    """Ask all processes in these namespaces to end, kill the remaining ones, and return all of them."""
    ended: list[ProcessId] = []
    for _ in range(_ROUNDS):
        found = processes_in(namespaces)
        if not found:
            break
        for process in found:
            with contextlib.suppress(OSError):
                _ask(process)
        for process in found:
            end(process, patience_s)
        ended += found
    return ended


def _ask(process: ProcessId) -> None:
    handle = os.pidfd_open(process.pid)
    try:
        if process.alive:
            signal.pidfd_send_signal(handle, signal.SIGTERM)
    finally:
        os.close(handle)
