"""Child processes that answer JSON lines: the switch daemon (and, through traffic.control, the endpoints)."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from weft.errors import WeftError
from weft.paths import ROOT


def python_module(name: str) -> list[str]:
    """Return the command that runs a module of ours, whatever lies in the working directory."""
    return [sys.executable, "-P", "-m", name]


def python_environment() -> dict[str, str]:
    """Return an environment in which our modules are found."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


class ChildError(WeftError):
    """A child process died, refused a command, or did not answer in time."""


class JsonLinesChild:
    """Talks to a process in JSON lines: one command a line on its stdin, one answer a line on its stdout."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self._pending = b""

    def read_answer(self, timeout_s: float) -> dict[str, Any]:
        """Return the next answer.

        Raises:
            ChildError: the process ended, answered something that is not JSON, or did not answer in time; the
                message ends with the last lines of its log.
        """
        line = self._read_line(timeout_s)
        try:
            answer = json.loads(line)
        except ValueError:
            raise ChildError(
                f"{self.name} answered '{line.strip()}', which is not JSON{self._log_tail()}"
            ) from None
        if not isinstance(answer, dict):
            raise ChildError(f"{self.name} answered '{line.strip()}', which is not an object")
        if "error" in answer:
            raise ChildError(f"{self.name}: {answer['error']}")
        return answer

    def _read_line(self, timeout_s: float) -> str:
        # Read from the descriptor itself: a buffered reader could keep a second line where poll does not see it.
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        poller = select.poll()
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
        while b"\n" not in self._pending:
            if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise ChildError(f"{self.name} did not answer within {timeout_s:g} s{self._log_tail()}")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise ChildError(f"{self.name} ended with status {self.process.wait()}{self._log_tail()}")
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        return line.decode(errors="replace")

    def send(self, command: dict[str, Any]) -> None:
        """Send a command without waiting for its answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise ChildError(f"{self.name} is gone{self._log_tail()}") from None

    def call(self, command: dict[str, Any], timeout_s: float = 30.0) -> dict[str, Any]:
        """Send a command and return its answer; raises ChildError as `read_answer`."""
        self.send(command)
        return self.read_answer(timeout_s)

    def require_alive(self) -> None:
        """Raise ChildError, with the end of its log, if the process has ended."""
        if self.process.poll() is not None:
            raise ChildError(f"{self.name} ended with status {self.process.returncode}{self._log_tail()}")

    def close(self, patience_s: float = 5.0) -> None:
        """End the process: its stdin closes, which asks it to leave; then SIGTERM, then SIGKILL."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        for action in (None, self.process.terminate, self.process.kill):
            if action is not None:
                action()
            try:
                self.process.wait(patience_s)
                break
            except subprocess.TimeoutExpired:
                continue
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _log_tail(self, lines: int = 12) -> str:
        try:
            tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        except OSError:
            return ""
        return "; its log ends:\n  " + "\n  ".join(tail) if tail else f" (its log, {self.log}, is empty)"
