"""`python -m weft.bench.soaking DIRECTORY SECONDS INTERVAL_S`: a lab of the real clock under load, and its processes.

The items of the scenario's traffic run in turn until the time is over. Meanwhile the memory, the open files and the
processor time of all processes of the lab are read; DIRECTORY/soak.json has them, with the time of every run.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from weft.results.json_files import read_whole, write_object
from weft.run.fabric import Fabric
from weft.run.spec import run_spec
from weft.run.task import Task
from weft.run.traffic_kinds.base import JoinableItem
from weft.scenario import load_scenario
from weft.sweeps.store import SCENARIO
from weft.switch.daemon.process import die_with_parent

SOAK_FILE = "soak.json"
_MOST_BYTES = 1 << 30
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_RUN_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class ProcessSample:
    """Memory and files of a process of the lab at a time of the run; `processor_s` since it began."""

    time_s: float
    pid: int
    name: str
    resident_bytes: int
    open_files: int
    processor_s: float


@dataclass(frozen=True)
class SoakRun:
    """One run of an item: when it began, in seconds since the fabric was up, and how long it took in emulated time."""

    item: int
    begin_s: float
    time_ps: int


@dataclass(frozen=True)
class Soak:
    """All that a soak test has recorded; `health` has the run's counters at the end."""

    seconds: float
    runs: list[SoakRun] = field(default_factory=list)
    samples: list[ProcessSample] = field(default_factory=list)
    dropped_packets: int = 0
    retransmitted_packets: int = 0
    ecn_marked_packets: int = 0


_ADAPTER: TypeAdapter[Soak] = TypeAdapter(Soak)


def read_soak(folder: Path) -> Soak:
    """Return what a soak test has written to its directory; BadInputError: it is not that."""
    return read_whole(_ADAPTER, folder / SOAK_FILE, _MOST_BYTES, "not what a soak test writes")


def soak(directory: Path, seconds: float, interval_s: float) -> Soak:
    """Run the scenario of a directory for so long, and return what was recorded."""
    spec = run_spec(load_scenario(directory / SCENARIO))
    runs: list[SoakRun] = []
    samples: list[ProcessSample] = []
    made = [
        item.prepare_task(spec.fabric.rank_count, spec.options.seed)
        for item in spec.traffic
        if isinstance(item, JoinableItem)
    ]
    with Fabric(spec) as fabric:
        tasks: list[Task[Any]] = [make(fabric) for make in made]
        began = time.monotonic()
        due_s = 0.0
        number = 0
        while (now_s := time.monotonic() - began) < seconds:
            if now_s >= due_s:
                samples += process_samples(now_s, os.getpid())
                due_s = now_s + interval_s
            item = number % len(tasks)
            runs.append(SoakRun(item, now_s, fabric.run_unnoted(tasks[item], _RUN_TIMEOUT_S, "soak")))
            number += 1
        samples += process_samples(time.monotonic() - began, os.getpid())
        summary = fabric.summary()
    return Soak(
        seconds,
        runs,
        samples,
        sum(summary.drops.values()),
        summary.retransmissions,
        sum(plane.ecn_marked_packets for plane in summary.planes),
    )


def process_samples(time_s: float, root: int) -> list[ProcessSample]:
    """Return a sample of a process and of each of its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _read(entry / "stat")):
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    family = {root}
    while found := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= found
    return [sample for pid in sorted(family) if (sample := _sample(time_s, pid)) is not None]


def _sample(time_s: float, pid: int) -> ProcessSample | None:
    """Return a process's sample; None if it has ended."""
    folder = Path("/proc") / str(pid)
    memory, stat = _read(folder / "statm"), _read(folder / "stat")
    try:
        open_files = len(os.listdir(folder / "fd"))
    except OSError:
        return None
    if not memory or not stat:
        return None
    fields = stat.rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    resident_bytes = int(memory.split()[1]) * _PAGE_BYTES
    return ProcessSample(time_s, pid, _name(folder), resident_bytes, open_files, ticks / _TICKS_PER_S)


def _name(folder: Path) -> str:
    """Return the module or program that a process runs."""
    words = _read(folder / "cmdline").split("\0")
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    return Path(words[0]).name or _read(folder / "comm").strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def main() -> None:
    """Run the soak test that the command line names."""
    die_with_parent()
    directory, seconds, interval_s = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    write_object(_ADAPTER, directory / SOAK_FILE, soak(directory, seconds, interval_s))


if __name__ == "__main__":
    main()
