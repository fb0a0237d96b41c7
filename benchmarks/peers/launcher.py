"""Runs one command from a small process, and writes what it spent as JSON; commands.py calls it as a script.

The kernel counts the memory of the process that starts a command towards the command's peak (getrusage(2)), so that a
benchmark which holds a large fabric must not start it itself.

    launcher.py REPORT LIMIT_S COMMAND…    standard output and error are the command's
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress

KIB = 1024
LOOK_S = 0.2


def main() -> None:
    """Run the command; the report has its exit code, or that it was stopped, its processor time and peak memory.

    The command is stopped when its time is over, or when nobody waits for it any more.
    """
    report, limit_s, *command = sys.argv[1:]
    parent, ends_s = os.getppid(), time.monotonic() + float(limit_s)
    ended, late = threading.Event(), threading.Event()
    pid = os.posix_spawnp(command[0], command, os.environ, setpgroup=0)

    def watch() -> None:
        while not ended.wait(LOOK_S):
            if time.monotonic() > ends_s:
                late.set()
            if late.is_set() or os.getppid() != parent:
                os.killpg(pid, signal.SIGKILL)
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        _, status, usage = os.wait4(pid, 0)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        raise
    ended.set()
    found = {
        "exit_code": os.waitstatus_to_exitcode(status),
        "late": late.is_set(),
        "processor_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * KIB,
    }
    with open(report, "w", encoding="ascii") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
