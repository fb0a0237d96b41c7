"""A gate that counts: instructions, cache misses and memory of small fixed runs, compared with a committed table.

    .venv/bin/python benchmarks/bench_gate.py [--update REASON] [--twice] [--json]

Timings say little on a busy machine; valgrind's counts are the same on any. Per packet-hop (a packet received by a
switch) of three runs in virtual time (gate_workloads.py), callgrind counts the engine's instructions and the misses of
a fixed cache: a permutation over three tiers, WebSearch flows with HPCC, an all-reduce in the network. Memory is what
fabric and traffic have in use at the end. Whole instructions are counted of `weft --help`, of the smallest
all-reduces of lab 1, and of setting 256 hosts up.

A count that differs from benchmarks/gate.json by more than its tolerance (gate_table.py) fails. A larger one is a
regression to mend or to give a reason for; a smaller one lets the next regression pass unless the table is updated.
`--update` counts and writes the table. The table names the versions that it holds for; with others the counts are
printed and fail nothing. `--twice` counts twice and fails if the tolerance is less than ten times the largest
difference.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from callgrind import CACHES, INSTRUCTIONS, Profile, read_instructions, read_profile
from figures import TABLE_WIDTH
from gate_table import (
    ENGINE_COUNTS,
    PYTHON_COUNTS,
    TABLE,
    TOLERANCE,
    Measured,
    Row,
    Table,
    TableError,
    compare,
    engine_compiler,
    grown_folders,
    largest_difference,
)
from rich.console import Console
from rich.table import Table as Printed

from weft.engine import _core
from weft.paths import ROOT

CPU = "x86-64-v3"
"""The level that P4 programs are compiled for (WEFT_CPU): the newest that valgrind runs."""
KEPT = ROOT / "build" / "gate"
"""Programs' machine code and modules' bytecode, which a run loads and does not make."""
MEMORY = "bytes of memory"
HELP = "weft --help"
LAB = "lab 1, smallest all-reduces"
LAB_SCENARIO = ROOT / "labs" / "01-allreduce" / "scenario.yaml"
MARGIN = 10
"""Times the difference between two counts, that the tolerance is at least."""


class CannotCountError(Exception):
    """The machine lacks what counting needs."""


def require_valgrind() -> Path:
    """The library of valgrind's requests, built. CannotCountError if the machine cannot count."""
    if shutil.which("valgrind") is None:
        raise CannotCountError("valgrind is not installed (apt install valgrind)")
    if platform.machine() != "x86_64":
        raise CannotCountError(f"the table is of x86-64, and this is {platform.machine()}")
    if " avx2 " not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        raise CannotCountError(f"this processor has no AVX2, which code for {CPU} needs")
    KEPT.mkdir(parents=True, exist_ok=True)
    library = KEPT / "requests.so"
    source = Path(__file__).with_name("gate_requests.c")
    done = subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", "-o", library, source], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotCountError(f"{source.name} does not compile: {done.stderr.strip()}")
    return library


def versions() -> dict[str, dict[str, str]]:
    """Return the versions of the tools and packages that change counts, by kind of count."""
    compiler, optimised = engine_compiler(Path(_core.__file__).read_bytes())
    engine = {
        "compiler": compiler,
        "link-time optimisation": optimised,
        "glibc": platform.libc_ver()[1],
        "llvmlite": metadata.version("llvmlite"),
        "valgrind": _output(["valgrind", "--version"]).strip().removeprefix("valgrind-"),
    }
    required = [
        re.split(r"[^\w.-]", each)[0] for each in metadata.requires("weft-fabric") or () if "extra ==" not in each
    ]
    python = {"python": platform.python_version(), **{each: metadata.version(each) for each in required}}
    return {ENGINE_COUNTS: engine, PYTHON_COUNTS: {**engine, **python}}


def count(library: Path, folder: Path) -> dict[str, Measured]:
    """All counts, by run. The folder takes the tools' output."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(smallest_of_lab(), encoding="utf-8")
    workloads = [sys.executable, str(ROOT / "benchmarks" / "gate_workloads.py")]
    commands = {
        HELP: ["--help"],
        LAB: ["run", str(scenario), "--clock", "virtual", "--out", str(folder / "runs")],
    }
    # Once without counting: it finds the calls to count, and leaves bytecode and programs for the counted runs.
    first = _lines(_output(workloads))
    calls = {name: line["calls"] for name, line in first.items() if "calls" in line}
    with ThreadPoolExecutor() as pool:  # as one process each, on as many cores as are free
        counting = pool.submit(
            _output,
            [
                "valgrind",
                "--tool=callgrind",
                "--instr-atstart=no",
                "--cache-sim=yes",
                *CACHES,
                f"--callgrind-out-file={folder}/callgrind.%p",
                *workloads,
                "--requests",
                str(library),
                "--calls",
                json.dumps(calls),
            ],
        )
        whole = {name: _instructions_of(arguments, folder) for name, arguments in commands.items()}
        counted = _lines(counting.result())
    found = {
        name: measured_of(read_profile((folder / f"callgrind.{line['process']}").read_text(encoding="utf-8")), line)
        for name, line in counted.items()
    }
    return {**found, **whole}


def measured_of(profile: Profile, line: Mapping[str, Any]) -> Measured:
    """The counts of a run that gate_workloads.py has printed a line about."""
    hops = line.get("packet_hops")
    if hops is None:
        return Measured(PYTHON_COUNTS, {INSTRUCTIONS: profile.counts[INSTRUCTIONS]})
    counts = {name: value / hops for name, value in profile.counts.items()}
    return Measured(
        ENGINE_COUNTS,
        {**counts, MEMORY: line["memory_bytes"] / hops},
        {folder: value / hops for folder, value in profile.folders.items()},
    )


def smallest_of_lab() -> str:
    """Lab 1's scenario with its first traffic, of its smallest size, only."""
    scenario = yaml.safe_load(LAB_SCENARIO.read_text(encoding="utf-8"))
    first = scenario["traffic"][0]
    return yaml.safe_dump({**scenario, "traffic": [{**first, "sizes": first["sizes"][:1]}]})


def _instructions_of(arguments: list[str], folder: Path) -> Measured:
    """Count the instructions of all processes of a `weft` command, with a warm cache."""
    command = [sys.executable, "-m", "weft", *arguments]
    _output(command)
    # Without a cache, cachegrind counts four times as fast as callgrind does.
    for old in folder.glob("cachegrind.*"):
        old.unlink()
    out = f"--cachegrind-out-file={folder}/cachegrind.%p"
    _output(["valgrind", "--tool=cachegrind", "--cache-sim=no", out, *command])
    files = folder.glob("cachegrind.*")
    return Measured(
        PYTHON_COUNTS,
        {INSTRUCTIONS: sum(read_instructions(each.read_text(encoding="utf-8")) for each in files)},
    )


def _lines(text: str) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in map(json.loads, text.splitlines())}


def _output(command: Sequence[str]) -> str:
    """Standard output of a command in an environment that is the same everywhere. RuntimeError if it fails."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": "0",
        "PYTHONPYCACHEPREFIX": str(KEPT / "bytecode"),
        "WEFT_CACHE_DIR": str(KEPT / "cache"),
        "WEFT_CPU": CPU,
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def print_rows(rows: Sequence[Row]) -> None:
    """A table of all counts."""
    printed = Printed(title="counts per packet-hop, and of whole commands", title_justify="left")
    for heading in ("run", "count", "now", "table", "ratio", ""):
        printed.add_column(heading, justify="right" if heading in ("now", "table", "ratio") else "left")
    for row in rows:
        printed.add_row(row.run, row.count, _number(row.now), _number(row.table), f"{row.ratio:.4f}", row.verdict)
    Console(width=max(Console().width, TABLE_WIDTH)).print(printed)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def verdict(table: Table, measured: Mapping[str, Measured], rows: Sequence[Row]) -> list[str]:
    """Return a line for each count that differs, with the next step; empty if all are the same."""
    said = []
    for row in rows:
        if row.verdict == "worse":
            said.append(f"{row.run}: {row.count} grew by {row.ratio - 1:.1%}")
            if row.count == INSTRUCTIONS:
                grown = grown_folders(table.runs[row.run], measured[row.run])
                said += [f"  {folder}: {growth:+.1f} a packet-hop" for folder, growth in grown]
        elif row.verdict == "better":
            said.append(f"{row.run}: {row.count} fell by {1 - row.ratio:.1%}: update the table, with the reason")
    return said


def main() -> int:
    """Count and compare; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", metavar="REASON", help="write the table anew; REASON says why counts changed")
    parser.add_argument("--twice", action="store_true", help="count twice, and compare the two")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.update is not None and not options.update.strip():
        parser.error("--update: the reason is empty")
    try:
        library = require_valgrind()
    except CannotCountError as lacking:
        print(f"bench-gate: skipped: {lacking}")
        return 0
    here = versions()
    with tempfile.TemporaryDirectory() as folder:
        measured = count(library, Path(folder))
    if options.twice:
        with tempfile.TemporaryDirectory() as folder:
            again = count(library, Path(folder))
        difference = largest_difference(measured, again)
        print(f"bench-gate: two counts differ by {difference:.2g} at most")
        if difference * MARGIN > TOLERANCE:
            print(f"bench-gate: more than a {MARGIN}th of the tolerance, {TOLERANCE:.0%}")
            return 1
    if options.update is not None:
        if here[ENGINE_COUNTS]["link-time optimisation"] == "off":
            print("bench-gate: no update: the table is of the engine as it ships, with link-time optimisation")
            return 1
        Table(options.update, here, measured).write(TABLE)
    try:
        table = Table.read(TABLE)
        differences = table.differences(here)
        rows = compare(table, measured, differences)
    except TableError as error:
        print(f"bench-gate: {error}")
        return 1
    said = verdict(table, measured, rows)
    if options.json:
        print(
            json.dumps(
                {
                    "rows": [{**asdict(row), "ratio": row.ratio, "verdict": row.verdict} for row in rows],
                    "versions": here,
                    "differences": differences,
                    "messages": said,
                },
                indent=1,
            )
        )
        return 1 if said else 0
    print_rows(rows)
    for kind, names in differences.items():
        if names:
            print(f"bench-gate: {kind} counts are not compared, as the table holds for other versions:")
            for name in names:
                print(f"  {name}")
    for line in said:
        print(f"bench-gate: {line}")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
