"""Tasks of p4-utils: shell commands on hosts, some time after the network is up."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from weft.cache.files import UnreadableFileError, read_text
from weft.errors import BadInputError

if TYPE_CHECKING:
    from weft.clocks.real.lab import MininetLab

_MOST_BYTES = 1024 * 1024
_LOOK_S = 0.1
_MOST_TIME_S = 10.0**6
_COMMENTS = ("#", "//")
_SYNTAX = "NODE START DURATION COMMAND, times in seconds up to 1000000"


@dataclass(frozen=True)
class Task:
    """A shell command on a host: from `start_s` on for `duration_s`, or to its end if that is not above 0."""

    node: str
    command: str
    start_s: float
    duration_s: float


def read_tasks(path: Path) -> Iterator[Task]:
    """Yield the tasks of a file. Raises BadInputError with the line."""
    try:
        lines = read_text(path, _MOST_BYTES).splitlines()
    except (UnreadableFileError, OSError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(_COMMENTS):
            continue
        try:
            node, start, duration, *command = shlex.split(line)
            times = float(start), float(duration)
            if not all(abs(each) <= _MOST_TIME_S for each in times):
                raise ValueError
        except ValueError:
            command, times = [], (0.0, 0.0)
        if not command:
            raise BadInputError(f"{line.strip()[:80]!r} is not a task", place=f"{path}, line {number}", valid=_SYNTAX)
        # One word is a command of the shell, as in p4-utils: h1 0 10 "ping 10.0.0.2".
        yield Task(node, command[0] if len(command) == 1 else shlex.join(command), *times)


class Tasks:
    """Runs tasks while entered; those that still run at the end are killed. `say` is told of those that fail."""

    def __init__(self, tasks: Sequence[Task], lab: MininetLab, say: Callable[[str], None]) -> None:
        self._tasks = tasks
        self._lab = lab
        self._say = say
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(task,), daemon=True) for task in tasks]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _run(self, task: Task) -> None:
        if self._ending.wait(max(0.0, task.start_s)):
            return
        process = self._lab.network.popen(
            task.node,
            ["sh", "-c", task.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until_s = time.monotonic() + task.duration_s if task.duration_s > 0 else math.inf
        while process.poll() is None and time.monotonic() < until_s:
            if self._ending.wait(_LOOK_S):
                break
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        elif process.returncode:
            self._say(f"{task.node}: {task.command!r} ended with {process.returncode}")
