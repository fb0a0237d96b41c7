"""Commands of a lab's hosts under the real clock."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.clocks.exec_commands import CommandOutcome, ExecRun, HostCommand, StartedCommand, unended
from weft.clocks.thread_states import state_of, threads_of
from weft.errors import CheckFailedError, EnvironmentLacksError

if TYPE_CHECKING:
    from weft.clocks.real.lab import MininetLab

_BETWEEN_LOOKS_S = 0.02
_MOST_BETWEEN_STARTS_S = 5.0
_TO_END_S = 2.0


def run_commands(lab: MininetLab, asked: ExecRun, now_ps: Callable[[], int]) -> list[CommandOutcome]:
    """Run commands to their end. Errors as `Lab.run_commands`."""
    if lab.verbs.missing:
        raise EnvironmentLacksError(f"exec: hosts have no RDMA device: {lab.verbs.missing}")
    deadline_s = time.monotonic() + asked.timeout_s
    directory = lab.directory / "exec"
    directory.mkdir(exist_ok=True)
    started: list[StartedCommand] = []
    try:
        for command in asked.commands:
            started.append(_begin(lab, command, directory / f"output{len(started)}", now_ps()))
            _wait_until_it_waits(started[-1], now_ps)
        while left := [each for each in started if not each.has_ended(now_ps())]:
            if time.monotonic() >= deadline_s:
                why = f"commands have not ended after {asked.timeout_s:g} s"
                raise CheckFailedError(unended({each.command: "runs" + each.last_line for each in left}, why))
            time.sleep(_BETWEEN_LOOKS_S)
        return [each.outcome() for each in started]
    finally:
        for each in started:
            _end(each)


def _begin(lab: MininetLab, command: HostCommand, path: Path, now_ps: int) -> StartedCommand:
    output = path.open("w+b")
    process = lab.network.net.get(command.host).popen(
        ["sh", "-c", command.command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
    )  # in a session of its own
    lab.own(process.pid)
    return StartedCommand(command, process, output, now_ps)


def _wait_until_it_waits(started: StartedCommand, now_ps: Callable[[], int]) -> None:
    """Wait until a command sleeps or has ended; of one that only computes, not for ever."""
    until_s = time.monotonic() + _MOST_BETWEEN_STARTS_S
    before: dict[int, int] = {}
    while time.monotonic() < until_s and not started.has_ended(now_ps()):
        time.sleep(_BETWEEN_LOOKS_S)
        states = {
            thread: state
            for pid in _session(started.process.pid)
            for thread in threads_of(pid)
            if (state := state_of(pid, thread)) is not None
        }
        turns = {thread: state.turns for thread, state in states.items()}
        if all(state.sleeps for state in states.values()) and turns == before:
            return
        before = turns


def _session(leader: int) -> list[int]:
    """Return the processes of a session that are there."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(name)) == leader:
                found.append(int(name))
    return found


def _end(started: StartedCommand) -> None:
    """End what is left of a command: ask first, so that programs can take their leave."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.process.pid, signal.SIGTERM)
    try:
        started.process.wait(_TO_END_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.process.pid, signal.SIGKILL)
        started.process.wait()
    started.output.close()
