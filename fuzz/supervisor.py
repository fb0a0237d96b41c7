"""Runs a worker in a process of its own, and turns its crash or hang into a finding."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from fuzz.statistics import Statistics
from fuzz.target import Target
from fuzz.worker import DUMP_SIGNAL, PROGRESS, Folder, Worker, keep_finding
from weft.cache import garbage_left_to_parent

_FORK = multiprocessing.get_context("fork")
_POLL_S = 0.25
_DUMP_S = 2.0
_START_UP_S = 120.0
_STDERR_TAIL_BYTES = 20_000
_IDLE = 10
"""A case may take so many times its CPU time by the clock: the machine may be busy, or a lock held for good."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def fuzz(make_target: Callable[[], Target], root: Path, seed: int, duration_s: float) -> Statistics:
    """Fuzz for `duration_s`; findings and figures are in `root`, from which the next run continues."""
    folder = Folder(root)
    folder.prepare()
    target = make_target()
    statistics = Statistics(target.name, seed)
    statistics.save(folder.statistics)
    while True:
        ending = _run_worker(make_target, folder, statistics, duration_s, target.timeout_s)
        statistics = Statistics.load(folder.statistics)
        if ending is None:
            return statistics
        if not PROGRESS.unpack(folder.progress.read_bytes())[0]:
            raise RuntimeError(f"the worker did not start; {ending}")
        case = folder.current.read_bytes()
        statistics.findings += keep_finding(folder, target, case, f"{ending[:60]} {case!r}", ending)
        statistics.count(f"FINDING {ending.splitlines()[0]}")
        statistics.restarts += 1
        statistics.save(folder.statistics)


def _run_worker(
    make_target: Callable[[], Target],
    folder: Folder,
    statistics: Statistics,
    duration_s: float,
    timeout_s: float,
) -> str | None:
    """None when the worker has finished; otherwise how it ended, with the end of what it wrote."""
    errors = folder.root / "stderr"
    folder.progress.write_bytes(PROGRESS.pack(0, time.monotonic(), _START_UP_S))

    def work() -> None:
        descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(descriptor, 2)
        Worker(make_target(), folder, statistics, duration_s).run()

    process = _FORK.Process(target=work, daemon=True)
    with garbage_left_to_parent():
        process.start()
    hung = False
    while process.is_alive():
        process.join(_POLL_S)
        _, began_s, cpu_s = PROGRESS.unpack(folder.progress.read_bytes())
        if _cpu_s(process.pid) - cpu_s > timeout_s or time.monotonic() - began_s > _IDLE * timeout_s:
            hung = True
            os.kill(process.pid or 0, DUMP_SIGNAL)
            process.join(_DUMP_S)
            process.kill()
            process.join()
    code = process.exitcode
    process.close()
    tail = errors.read_bytes()[-_STDERR_TAIL_BYTES:].decode(errors="replace") if errors.exists() else ""
    if hung:
        return f"hang: no outcome within {timeout_s:g} s\n{tail}"
    if code == 0:
        return None
    how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
    return f"crash: the process ended with {how}\n{tail}"


def _cpu_s(pid: int | None) -> float:
    """CPU time of a process, all threads; 0 once it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return 0.0
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS_PER_S
