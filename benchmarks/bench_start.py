"""How long fabric.p4 takes from source to a native pipeline that is ready to run, cold and from the cache.

    .venv/bin/python benchmarks/bench_start.py [--program FILE.p4] [--repetitions N] [--json] [--realtime]

Every measurement is a process of its own, from its start to its end, by the wall clock: one that compiles and loads at
once, the two of a lab, `weft compile` followed by one that loads the files, and `weft run` of lab 1 in virtual time.
The median of the repetitions counts; phases are those of one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import Figure, argument_parser, report
from scheduling import realtime_this_process

from weft.paths import ROOT

PROGRAM = ROOT / "p4" / "fabric.p4"
LAB = ROOT / "labs" / "01-allreduce" / "scenario.yaml"
GOAL_LAB_S = 2.0

# Runs in a fresh interpreter; prints (phase, seconds) pairs. `perf_counter` is CLOCK_MONOTONIC, as in the parent.
PHASES = """
import sys, time
started, marks = float(sys.argv[2]), []
def mark(phase):
    marks.append((phase, time.perf_counter()))
mark("interpreter")
if sys.argv[1].endswith(".p4"):
    from weft.compiler import compile_artifacts
    mark("import compiler")
    document = compile_artifacts(sys.argv[1]).json_text
    mark("compile")
else:
    from pathlib import Path
    document = Path(sys.argv[1]).read_text(encoding="utf-8")
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
mark("import switch")
program = load_program(document)
mark("read JSON")
switch = NativeSwitch()
if sys.argv[3] == "split":
    from weft.switch.lowering.program import lower_program
    mark("import lowering")
    lower_program(program)
    mark("lowering")
switch.load(program)
mark("load")
import json
before = started
for index, (phase, at) in enumerate(marks):
    marks[index], before = (phase, at - before), at
print(json.dumps(marks))
"""


def spend(command: list[str], cache: Path | None) -> tuple[float, str]:
    """Seconds that a process takes from start to end, and what it prints."""
    environment = {**os.environ, "WEFT_CACHE_DIR": str(cache or ""), "PYTHONPATH": str(ROOT)}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(done.stderr)
    return seconds, done.stdout


def phases(source: Path, cache: Path | None, mode: str = "whole") -> tuple[float, list[tuple[str, float]]]:
    """Seconds of a process that makes a pipeline from `source`, P4 or JSON, and of its phases."""
    command = [sys.executable, "-c", PHASES, str(source), repr(time.perf_counter()), mode]
    seconds, printed = spend(command, cache)
    return seconds, [(phase, duration) for phase, duration in json.loads(printed)]


def one_process(program: Path, cache: Path) -> float:
    """Compile and load in one process."""
    return phases(program, cache)[0]


def two_processes(program: Path, cache: Path) -> float:
    """`weft compile`, then a process that loads the JSON."""
    output = cache.with_name("program.json")
    arguments = ["compile", str(program), "-o", str(output), "--p4info", str(output.with_suffix(".txtpb"))]
    compiled, _ = spend([sys.executable, "-m", "weft", *arguments], cache)
    return compiled + phases(output, cache)[0]


def cold_and_cached(measure: Callable[[Path, Path], float], program: Path, repetitions: int) -> tuple[float, float]:
    """Medians with an empty cache and with one that holds all."""
    cold, cached = [], []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder, "cache")
            cold.append(measure(program, cache))
            cached.append(measure(program, cache))
    return statistics.median(cold), statistics.median(cached)


def lab_s(repetitions: int) -> float:
    """Median of a whole `weft run` of lab 1, with all that can be kept from an earlier run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "-m", "weft", "run", str(LAB), "--clock", "virtual", "--out", str(folder / "run")]
        spend(command, folder / "cache")
        return statistics.median(spend(command, folder / "cache")[0] for _ in range(repetitions))


def measure(program: Path, repetitions: int) -> list[Figure]:
    """All figures."""
    phases(program, None)  # Python's own bytecode is written by now, and files are in memory
    figures = []
    for title, run in (("one process", one_process), ("two processes", two_processes)):
        cold_s, cached_s = cold_and_cached(run, program, repetitions)
        figures += [
            Figure(f"{title}, cached", cached_s, "s"),
            Figure("  cold", cold_s, "s", "cached", cold_s / cached_s),
        ]
    with tempfile.TemporaryDirectory() as folder:
        for title, mode in (("cold", "whole"), ("cached", "whole"), ("lowered twice", "split")):
            whole_s, entries = phases(program, Path(folder) if mode == "whole" else None, mode)
            figures.append(Figure(f"phases, {title}", whole_s, "s"))
            figures += [Figure(f"  {phase}", seconds, "s") for phase, seconds in entries]
    return [*figures, Figure("weft run of lab 1", lab_s(repetitions), "s", goal=GOAL_LAB_S, at_most=True)]


def main() -> None:
    """Measure and print."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("--program", type=Path, default=PROGRAM, help="P4 program [p4/fabric.p4]")
    parser.add_argument("--repetitions", type=int, default=5, help="of each measurement [5]")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    if options.realtime:
        realtime_this_process()
    title = f"{options.program.name}, source to ready pipeline, median of {options.repetitions}"
    report(title, measure(options.program, options.repetitions), as_json=options.json)


if __name__ == "__main__":
    main()
