"""Commands that the page has started: processes of `weft`, with progress, output, and one way to end them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.errors import BadInputError, WeftError
from weft.system.child_processes import python_environment, python_module
from weft.workbench.folder import ConflictError

MOST_AT_ONCE = 4
"""Commands that may run at the same time."""
MOST_KEPT = 200
"""Ended commands that the page can still ask for."""
_MOST_LINES = 400
_MOST_CHARACTERS = 1000
"""Output that is kept: the last lines, and of each so much."""
_READ_BYTES = 1 << 16
_PATIENCE_S = 20.0
"""Time that interrupted commands have to take down what they have built."""
_ENVIRONMENT = {"WEFT_PROGRESS": "json", "PYTHONUNBUFFERED": "1"}


@dataclass
class Job:
    """A command. `state` is running, cancelling, done, failed or cancelled; `made` names what it is to write."""

    number: int
    kind: str
    file: str
    words: Sequence[str]
    made: Path | None
    process: subprocess.Popen[bytes]
    began_s: float
    state: str = "running"
    code: int | None = None
    stage: str = ""
    share: float | None = None
    progress: str = ""
    ended_s: float | None = None
    page: str | None = None
    """Path under which the server has the page that the command has written."""
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    has_ended: threading.Event = field(default_factory=threading.Event)

    @property
    def is_running(self) -> bool:
        """Whether the process is still there."""
        return self.code is None

    def as_dict(self) -> dict[str, Any]:
        """Return what the page shows; the output of commands that have ended."""
        until_s = time.monotonic() if self.ended_s is None else self.ended_s
        return {
            "number": self.number,
            "kind": self.kind,
            "file": self.file,
            "command": " ".join(["weft", *self.words]),
            "made": self.made.name if self.made is not None else None,
            "page": self.page,
            "state": self.state,
            "code": self.code,
            "stage": self.stage,
            "share": self.share,
            "progress": self.progress,
            "seconds": round(until_s - self.began_s, 1),
            "output": "" if self.is_running else "\n".join(self.lines),
        }


class Jobs:
    """Starts commands in a folder, and ends them. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._jobs: dict[int, Job] = {}
        self._last = 0
        self._is_ending = False

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_all()

    def start(
        self,
        kind: str,
        file: str,
        words: Sequence[str],
        made: Path | None = None,
        ended: Callable[[Job, int], None] = lambda _job, _code: None,
    ) -> Job:
        """Start `weft` with these words; `ended` is called with its exit code before others learn of its end.

        Raises:
            ConflictError: too many run already.
        """
        with self._lock:
            # A drawing takes no run's place, nor the other way round.
            running = sum(job.is_running and (job.kind == "draw") == (kind == "draw") for job in self._jobs.values())
            if self._is_ending or running >= MOST_AT_ONCE:
                raise ConflictError(f"{running} commands are running: wait for one, or cancel it")
            process = subprocess.Popen(
                [*python_module("weft.workbench.child"), *words],
                cwd=self._folder,
                env=python_environment() | _ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Ctrl-C at the workbench's terminal is for the workbench, which then ends its commands.
                start_new_session=True,
            )
            self._last += 1
            job = Job(self._last, kind, file, words, made, process, time.monotonic())
            self._jobs[job.number] = job
            for number in [each for each, old in self._jobs.items() if not old.is_running][:-MOST_KEPT]:
                del self._jobs[number]
            threading.Thread(target=self._follow, args=(job, ended), daemon=True).start()
        return job

    def job(self, number: object) -> Job:
        """Return a command by its number. Raises BadInputError."""
        with self._lock:
            if not isinstance(number, int) or isinstance(number, bool) or number not in self._jobs:
                raise BadInputError(f"there is no command {number!r}"[:100])
            return self._jobs[number]

    def all(self) -> list[Job]:
        """Return all commands, in the order of their start."""
        with self._lock:
            return list(self._jobs.values())

    def cancel(self, number: object) -> Job:
        """Interrupt a command, as Ctrl-C does. Raises BadInputError."""
        job = self.job(number)
        with self._lock:
            _interrupt(job)
        return job

    def end_all(self) -> None:
        """Interrupt all commands and wait for their ends; kill those that do not end."""
        with self._lock:
            self._is_ending = True
            running = [job for job in self._jobs.values() if job.is_running]
            for job in running:
                _interrupt(job)
        deadline = time.monotonic() + _PATIENCE_S
        for job in running:
            try:
                job.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job.process.pid, signal.SIGKILL)
        for job in running:
            job.has_ended.wait(_PATIENCE_S)

    def _follow(self, job: Job, ended: Callable[[Job, int], None]) -> None:
        """Keep a command's output until its end."""
        try:
            _keep_output(job)
        finally:
            code = job.process.wait()
            with contextlib.suppress(OSError, WeftError):
                ended(job, code)
            with self._lock:
                _close(job)
                job.ended_s = time.monotonic()
                job.state = "done" if code == 0 else "cancelled" if job.state == "cancelling" else "failed"
                job.code = code
            job.has_ended.set()


def _keep_output(job: Job) -> None:
    assert job.process.stdout is not None
    pending = b""
    with job.process.stdout as stream:
        while chunk := os.read(stream.fileno(), _READ_BYTES):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                _note(job, line)
            if len(pending) > _READ_BYTES:  # a line without end is no line of ours
                _note(job, pending)
                pending = b""
    if pending:
        _note(job, pending)


def _interrupt(job: Job) -> None:
    if job.is_running and job.state == "running":
        job.state = "cancelling"
        _close(job)


def _close(job: Job) -> None:
    assert job.process.stdin is not None
    with contextlib.suppress(OSError):
        job.process.stdin.close()


def _note(job: Job, line: bytes) -> None:
    text = line.decode(errors="replace").rstrip("\r")
    said = _progress_in(text)
    if said is None:
        job.lines.append(_printable(text[:_MOST_CHARACTERS]))
    elif isinstance(said.get("stage"), str):
        job.stage, job.share, job.progress = said["stage"], None, ""
        job.lines.append(f"· {_printable(job.stage)}")
    else:
        share, progress = said.get("share"), said.get("text")
        # False also for no number, and for integers that no float holds.
        job.share = float(share) if isinstance(share, int | float) and 0 <= share <= 1 else None
        job.progress = progress if isinstance(progress, str) else ""


def _progress_in(text: str) -> dict[str, Any] | None:
    if not text.startswith('{"progress"'):
        return None
    try:
        said = json.loads(text)["progress"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else "\ufffd" for each in text)
