"""A worker's task (in a thread here, or in Dask): start a process for a point, wait for it, report its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from weft.sweeps.store import LOG, OUTPUT, Outcome, State
from weft.system.child_processes import python_environment, python_module

_STOPPED = "the sweep was interrupted"
_WEFT_RUN = "weft.sweeps.point"
_ERROR_LINES = 12
_PATIENCE_S = 5.0

# By sweep: its running processes, and whether it has been stopped.
_lock = threading.Lock()
_running: dict[str, set[subprocess.Popen[bytes]]] = {}
_stopped: set[str] = set()


def run_point(sweep: str, directory: str, arguments: Sequence[str] = (), program: Sequence[str] = ()) -> Outcome:
    """Run a scenario in a process of its own; its output and results go to a directory.

    The scenario is the one in the directory, or that of the `arguments` of `weft run`. A `program` is a module that
    runs in place of `weft run`, and its arguments after the directory.
    """
    module, *further = program or (_WEFT_RUN, *arguments)
    folder = Path(directory)
    environment = python_environment() | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with (folder / OUTPUT).open("wb") as output, (folder / LOG).open("wb") as log:
        with _lock:
            if sweep in _stopped:
                return Outcome(State.NOT_RUN, _STOPPED)
            # In a session of its own: Ctrl-C at the terminal is for the sweep, which then stops its runs.
            process = subprocess.Popen(
                [*python_module(module), directory, *further],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
            _running.setdefault(sweep, set()).add(process)
        try:
            status = process.wait()
        finally:
            with _lock:
                _running[sweep].discard(process)
    if sweep in _stopped:
        return Outcome(State.NOT_RUN, _STOPPED)
    return Outcome(State.FINISHED) if status == 0 else Outcome(State.FAILED, _explain(status, folder))


def stop_points(sweep: str) -> None:
    """End all processes of a sweep on this worker, and start no more."""
    with _lock:
        _stopped.add(sweep)
        processes = list(_running.get(sweep, ()))
    for process in processes:
        process.terminate()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            continue
        process.kill()


def sees(file: str) -> bool:
    """Whether this worker sees a file of the sweep's directory."""
    return os.path.exists(file)


def _explain(status: int, folder: Path) -> str:
    """Return why a run failed: what `weft run` said, or how its process ended."""
    if status < 0:
        return f"its process was ended by {signal.Signals(-status).name}"
    said = [
        line
        for line in (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip() and not line.startswith("· ")
    ]
    if not said:
        return "a result is not what NumPy computes" if status == 1 else f"its process ended with status {status}"
    if said[0].startswith("weft: "):
        return "\n".join(said[:_ERROR_LINES]).removeprefix("weft: ")
    return said[-1]
