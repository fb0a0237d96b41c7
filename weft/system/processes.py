"""Processes identified by id and start time, so that a reused id is not mistaken for the original."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A process: its id and the kernel's start time (field 22 of /proc/PID/stat, clock ticks since boot)."""

    pid: int
    start_ticks: int

    @staticmethod
    def of(pid: int) -> ProcessId | None:
        """Return the identity of a living process; None if there is none (a zombie does not count)."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (OSError, ValueError):
            return None
        return None if fields[0] in "ZX" else ProcessId(pid, int(fields[19]))

    @property
    def alive(self) -> bool:
        """Return whether this process still runs."""
        return ProcessId.of(self.pid) == self


def end(process: ProcessId, patience_s: float = 5.0) -> bool:
    """Ask a process to end, and kill it if it does not within `patience_s`; return whether it was alive."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not process.alive:
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            deadline = time.monotonic() + patience_s
            while process.alive and time.monotonic() < deadline:
                if poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    break
            if not process.alive:
                break
        return True
    finally:
        os.close(handle)
