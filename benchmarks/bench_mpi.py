"""One run by several processes (mpirun), beside one thread and as many threads.

    .venv/bin/python benchmarks/bench_mpi.py [--leaves 8] [--hosts-per-leaf 16] [--kib 1024] [--processes 2]
        [--repetitions 3] [--json]

Leaves and as many spines, links of 100 Gb/s and 500 ns, fabric.p4 at every switch, on which each host writes to one
other (lengths in place of data). Times are the machine's for the traffic, without building the fabric; each is the
least of the repetitions. Memory is that of the largest process. All runs must write the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import Figure, argument_parser, report

SCENARIO = """
name: processes
clock: virtual
fabric: {{leaves: {leaves}, spines: {leaves}, hosts_per_leaf: {hosts_per_leaf}, planes: 1, host_rate: 100Gb/s}}
traffic: [{{permutation: {kib}KiB, data: lengths}}]
"""
WEFT = (sys.executable, "-m", "weft", "run")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n")
MIB = 1 << 20


@dataclass(frozen=True)
class Measured:
    """A run: seconds of its traffic, memory of its largest process, what it wrote."""

    traffic_s: float
    memory_mib: float
    files: dict[str, bytes]


def measure(command: Sequence[str], directory: Path) -> Measured:
    """Run a command that writes results to a directory."""
    with subprocess.Popen(
        [*command, "--out", str(directory)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    times = json.loads((directory / "wall_times.json").read_text(encoding="utf-8"))
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "wall_times.json"}
    return Measured(times["traffic"], usage.ru_maxrss * 1024 / MIB, files)


def measured_figures(options: argparse.Namespace, folder: Path) -> list[Figure]:
    """Measure all ways of running the scenario, in turn."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO.format(**vars(options)), encoding="utf-8")
    count = str(options.processes)
    ways = {
        "one thread": [*WEFT, str(scenario), "--workers", "1"],
        f"{count} threads": [*WEFT, str(scenario), "--workers", count],
        f"{count} processes": [*MPIRUN, count, *WEFT, str(scenario), "--workers", "1"],
    }
    runs: dict[str, list[Measured]] = {name: [] for name in ways}
    for repetition in range(options.repetitions):
        for name, command in ways.items():
            runs[name].append(measure(command, folder / f"{name} {repetition}"))
    alone = runs["one thread"]
    if any(each.files != alone[0].files for of_way in runs.values() for each in of_way):
        raise SystemExit("the runs did not write the same files")
    alone_s = min(each.traffic_s for each in alone)
    figures = []
    for name, of_way in runs.items():
        traffic_s = min(each.traffic_s for each in of_way)
        compared_with = "" if of_way is alone else "one thread's rate"
        figures.append(
            Figure(f"traffic, {name}", traffic_s, "s", compared_with, alone_s / traffic_s if compared_with else None)
        )
        memory_mib = min(each.memory_mib for each in of_way)
        figures.append(Figure(f"memory of a process, {name}", memory_mib, "MiB"))
    return figures


def main() -> None:
    """Measure and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--leaves", type=int, default=8)
    parser.add_argument("--hosts-per-leaf", type=int, default=16)
    parser.add_argument("--kib", type=int, default=1024)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measured_figures(options, Path(folder))
    hosts = options.leaves * options.hosts_per_leaf
    report(f"{hosts} hosts, a permutation of {options.kib} KiB", figures, as_json=options.json)


if __name__ == "__main__":
    main()
