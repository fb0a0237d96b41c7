"""Commands in hosts, as `weft exec` runs them: what a lab is asked to run, and what comes of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from weft.quantities.units import shown

MOST_OUTPUT_BYTES = 1 << 16
"""A result keeps that much of a command's output, from its end."""
_MOST_LINE_BYTES = 512


@dataclass(frozen=True)
class HostCommand:
    """A command line of a host, given to a shell."""

    host: str
    command: str

    @property
    def title(self) -> str:
        """Name in messages."""
        return f"{self.host}: {self.command}"


@dataclass(frozen=True)
class ExecRun:
    """Commands that begin in their order, each when all before it wait or have ended.

    Commands may enter their own hosts and `more_hosts` by `weft exec`.
    """

    commands: Sequence[HostCommand]
    timeout_s: float
    more_hosts: Sequence[str] = ()


@dataclass(frozen=True)
class CommandOutcome:
    """How a command has ended.

    Attributes:
        status: exit status; below 0 the signal that ended it.
        started_ps, finished_ps: in emulated time.
        output: what it and its processes wrote, both streams, in their order; of more than `MOST_OUTPUT_BYTES` the end.
        output_bytes: how much that was.
        wall_clock_uses: in virtual time, calls that it made whose times are the wall clock's.
    """

    command: HostCommand
    status: int
    started_ps: int
    finished_ps: int
    output: str
    output_bytes: int
    wall_clock_uses: tuple[str, ...] = ()


@dataclass
class StartedCommand:
    """A command that has begun, and the file with its output."""

    command: HostCommand
    process: subprocess.Popen[bytes]
    output: BinaryIO
    started_ps: int
    finished_ps: int | None = None

    def has_ended(self, now_ps: int) -> bool:
        """Return whether it has ended; if it has since the last time, that was now."""
        if self.finished_ps is None and self.process.poll() is not None:
            self.finished_ps = now_ps
        return self.finished_ps is not None

    def outcome(self, wall_clock_uses: tuple[str, ...] = ()) -> CommandOutcome:
        """Return the outcome of one that has ended."""
        assert self.finished_ps is not None
        text, size = _end_of(self.output, MOST_OUTPUT_BYTES)
        return CommandOutcome(
            self.command, self.process.returncode, self.started_ps, self.finished_ps, text, size, wall_clock_uses
        )

    @property
    def last_line(self) -> str:
        """The last line that it has written, for a message; "" if it has written nothing."""
        text, _ = _end_of(self.output, _MOST_LINE_BYTES)
        lines = text.strip().splitlines()
        return f" (its last line: {shown(lines[-1])})" if lines else ""


def _end_of(output: BinaryIO, most_bytes: int) -> tuple[str, int]:
    size = os.fstat(output.fileno()).st_size
    output.seek(max(0, size - most_bytes))
    return output.read(most_bytes).decode(errors="replace"), size


def unended(waiting: Mapping[HostCommand, str], why: str) -> str:
    """Return what is wrong when commands do not end: what each of them does, by host and command."""
    return f"exec: {why}: " + "; ".join(f"{command.title} {what}" for command, what in waiting.items())
