"""Commands that run during a lab, outside its hosts: p4-utils' `exec_scripts`, mostly controllers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from weft.clocks.real.access import hand_over
from weft.clocks.real.lab_files import end_of, open_new


@dataclass(frozen=True)
class _Running:
    command: str
    process: subprocess.Popen[bytes]
    log: IO[bytes]


class ScriptsBeside:
    """Runs commands while entered, with this process's environment; those that still run at the end are killed.

    With them goes all that they have started, unless it has left their session.

    Args:
        commands: for `sh`, all at once.
        folder: where they run.
        logs: the folder for what they say, `exec_script_1.log` and so on.
        say: is told, from a thread, of each that ends with an error.

    """

    def __init__(
        self,
        commands: Sequence[str],
        folder: Path,
        logs: Path,
        say: Callable[[str], None],
    ) -> None:
        self._commands = commands
        self._folder = folder
        self._logs = logs
        self._say = say
        self._running: list[_Running] = []
        self._threads: list[threading.Thread] = []
        self._is_ending = False

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.push(self.__exit__)
            for number, command in enumerate(self._commands, 1):
                self._start(command, self._logs / f"exec_script_{number}.log")
            undo.pop_all()
        return self

    def _start(self, command: str, path: Path) -> None:
        log = open_new(path)
        hand_over([path])
        try:
            process = subprocess.Popen(
                ["sh", "-c", command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            log.close()
            raise
        running = _Running(command, process, log)
        self._running.append(running)
        thread = threading.Thread(target=self._watch, args=(running,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _watch(self, running: _Running) -> None:
        # It is not reaped before the end: until then no other process group can have its number.
        found = os.waitid(os.P_PID, running.process.pid, os.WEXITED | os.WNOWAIT)
        if found is None or not found.si_status or self._is_ending:
            return
        ended = f"{'ended with' if found.si_code == os.CLD_EXITED else 'was ended by signal'} {found.si_status}"
        said = end_of(running.log)
        self._say(": ".join(filter(None, (f"{running.command!r} {ended}", said))))

    def __exit__(self, *_: object) -> None:
        self._is_ending = True
        for running in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.process.pid, signal.SIGKILL)
        for thread in self._threads:
            thread.join()
        for running in self._running:
            running.process.wait()
            running.log.close()
        self._running.clear()
        self._threads.clear()
