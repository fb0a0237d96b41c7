"""Child processes that answer JSON lines: the switch daemon (and, through traffic.control, the endpoints)."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import BadInputError, WeftError
from weft.paths import ROOT, is_installed


def python_module(name: str) -> list[str]:
    """Return the command that runs a Weft module, ignoring modules in the working directory."""
    return [sys.executable, "-P", "-m", name]


def python_environment() -> dict[str, str]:
    """Return an environment in which Weft's modules are found."""
    # An interpreter's own packages must not come before its standard library, as all of PYTHONPATH does.
    return dict(os.environ) if is_installed() else os.environ | {"PYTHONPATH": str(ROOT)}


class ChildError(WeftError):
    """A child process died, rejected a command, or did not answer in time."""


@dataclass(frozen=True)
class WatchedProcess:
    """A process of the lab on which others depend, with its name and log."""

    name: str
    process: subprocess.Popen[Any]
    log: Path

    def require_alive(self) -> None:
        """Raise ChildError, with the end of its log, if the process has ended."""
        if self.process.poll() is not None:
            raise ChildError(f"{self.name} ended with status {self.process.returncode}{log_tail(self.log)}")


class JsonLinesChild:
    """Exchanges JSON lines with a process: one command per line on its stdin, one answer per line on its stdout.

    If a process that it `needs` dies, every wait for an answer ends at once.
    """

    def __init__(
        self, name: str, process: subprocess.Popen[str], log: Path, needs: Sequence[WatchedProcess] = ()
    ) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._pending = b""
        self._numbers = itertools.count(1)
        self._needs = tuple(needs)

    @property
    def watched(self) -> WatchedProcess:
        """This process, for others that depend on it."""
        return WatchedProcess(self.name, self.process, self.log)

    def read_answer(self, timeout_s: float, number: int | None = None) -> dict[str, Any]:
        """Return the next answer, or the answer to the command with `id` equal to `number`, discarding earlier ones.

        Raises:
            ChildError: the process or one that it needs ended, or it did not answer in JSON, or not in time; the
                message ends with the last lines of the log.
            BadInputError: the user's code raised an error there.
        """
        deadline = time.monotonic() + timeout_s
        answer = self._parse(self._read_line(timeout_s))
        while number is not None and answer.get("id", number) != number:
            answer = self._parse(self._read_line(max(0.0, deadline - time.monotonic())))
        if "user_error" in answer:
            raise BadInputError(answer["user_error"])
        if "error" in answer:
            raise ChildError(f"{self.name}: {answer['error']}")
        return answer

    def _parse(self, line: str) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            raise ChildError(f"{self.name} answered '{line.strip()}', which is not JSON{log_tail(self.log)}") from None
        if not isinstance(answer, dict):
            raise ChildError(f"{self.name} answered '{line.strip()}', which is not an object")
        return answer

    def _read_line(self, timeout_s: float) -> str:
        # Read from the descriptor: a buffered reader could hold a second line that poll does not see.
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        poller = select.poll()
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
        with _deaths(self._needs) as deaths:
            for death in deaths:
                poller.register(death, select.POLLIN)
            while b"\n" not in self._pending:
                ready = poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
                if not ready:
                    raise ChildError(f"{self.name} did not answer within {timeout_s:g} s{log_tail(self.log)}")
                for needed in self._needs:
                    needed.require_alive()
                if descriptor in (number for number, _ in ready):
                    self._read_some(descriptor)
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode(errors="replace")

    def _read_some(self, descriptor: int) -> None:
        data = os.read(descriptor, 1 << 16)
        if not data:
            raise ChildError(f"{self.name} ended with status {self.process.wait()}{log_tail(self.log)}")
        self._pending += data

    def send(self, command: dict[str, Any]) -> None:
        """Send a command without waiting for its answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise ChildError(f"{self.name} is gone{log_tail(self.log)}") from None

    def call(self, command: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
        """Send a command and return its answer; raises ChildError as `read_answer`."""
        number = next(self._numbers)
        self.send(command | {"id": number})
        return self.read_answer(timeout_s, number)

    def close(self, patience_s: float = 5.0) -> None:
        """End the process: `ask_to_end`; then SIGTERM, then SIGKILL."""
        self.ask_to_end()
        for action in (None, self.process.terminate, self.process.kill):
            if action is not None:
                action()
            if _has_ended(self.process, patience_s):
                break
        if self.process.stdout is not None:
            self.process.stdout.close()

    def ask_to_end(self) -> None:
        """Close the process's stdin, which makes it exit; repeated calls do nothing."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()


def _has_ended(process: subprocess.Popen[Any], patience_s: float) -> bool:
    """Return whether a process ends within `patience_s`. (Popen.wait only checks every 50 ms.)"""
    if process.poll() is None:
        descriptor = os.pidfd_open(process.pid)
        try:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            poller.poll(patience_s * 1000)
        finally:
            os.close(descriptor)
    return process.poll() is not None


@contextlib.contextmanager
def _deaths(processes: Sequence[WatchedProcess]) -> Iterator[list[int]]:
    """Yield a descriptor for each process; it becomes readable when the process ends."""
    with contextlib.ExitStack() as stack:
        descriptors = []
        for each in processes:
            each.require_alive()
            descriptors.append(os.pidfd_open(each.process.pid))
            stack.callback(os.close, descriptors[-1])
        yield descriptors


def log_tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a process's log as the end of an error message."""
    try:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    except OSError:
        return ""
    return "; its log ends:\n  " + "\n  ".join(tail) if tail else f" (its log, {log}, is empty)"
