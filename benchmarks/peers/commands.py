"""Runs a whole command and measures it: processor time, peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True)
class Spent:
    """Processor time of a command, processes that it waited for included, and the peak memory of the largest one."""

    processor_s: float
    peak_bytes: int


def measured(command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float) -> tuple[Spent, str]:
    """Run a command in a folder; return what it spent and what it printed.

    Raises RuntimeError if it fails, and TimeoutError if it has not ended after `limit_s` by the wall clock; it is
    killed then, with the processes that it has started.
    """
    report, printed, errors = (folder / name for name in ("spent.json", "printed.txt", "errors.txt"))
    with printed.open("wb") as output, errors.open("wb") as complaints:
        subprocess.run(
            [sys.executable, "-S", LAUNCHER, report, str(limit_s), *command],
            cwd=folder,
            env=dict(environment),
            stdout=output,
            stderr=complaints,
            check=True,
        )
    found = json.loads(report.read_text(encoding="ascii"))
    said = printed.read_text(encoding="utf-8", errors="replace")
    shown = " ".join(map(str, command))
    if found["late"]:
        raise TimeoutError(f"{shown}: not done after {limit_s:g} s")
    if found["exit_code"]:
        complained = errors.read_text(encoding="utf-8", errors="replace")
        ends = said[-_SHOWN_CHARACTERS:] + complained[-_SHOWN_CHARACTERS:]
        raise RuntimeError(f"{shown}: exit code {found['exit_code']}\n{ends}")
    return Spent(found["processor_s"], found["peak_bytes"]), said
