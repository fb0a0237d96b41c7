"""Two checkouts of Weft in turns on one machine: what the same benchmarks measure in each, and the ratio.

    .venv/bin/python benchmarks/bench_turns.py OTHER [--turns N] [--only NAME…] [--quick] [--json] [--realtime]

OTHER is the root of another checkout, its engine built there; its own benchmarks run with it. A machine's speed changes
within minutes, so both run one after the other, turn by turn, and the best of each counts: the largest rate, the
shortest time. Each run has a process of its own, with this interpreter. A figure that only one checkout prints
is left out. `--quick` runs each benchmark at a size of seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from figures import Figure, argument_parser, quantity, report

from weft.paths import ROOT


@dataclass(frozen=True)
class Compared:
    """A benchmark's file and its arguments; `quick` are those for a run of seconds."""

    file: str
    arguments: str
    quick: str


COMPARED = {
    "permutation": Compared("bench_permutation.py", "--hosts 1024 --rounds 2", "--hosts 16 --bytes 20000 --rounds 1"),
    "websearch": Compared("bench_websearch.py", "", "--duration-us 20"),
    "hops": Compared("bench_hops.py", "--leaves 8 32 --rounds 12 --workers 1", "--leaves 4 --rounds 1 --workers 1"),
    "set-up": Compared(
        "bench_scale.py",
        "--sizes 1024 16384 --setup-only",
        "--fabric '{hosts_per_leaf: 2}' --setup-only",
    ),
}
_TIMES = ("s", "ms")
"""Units of times that the machine takes; benchmarks print emulated times in smaller ones."""
_SIZES_AND_RATES = ("/s", "iB", "MB", "GB")


class NoCheckoutError(Exception):
    """A folder is no checkout with an engine."""


def require_checkout(folder: Path) -> Path:
    """Return the folder. Raises NoCheckoutError unless it has benchmarks and a built engine."""
    if not (folder / "benchmarks" / "figures.py").is_file():
        raise NoCheckoutError(f"{folder}: no checkout of Weft (it lacks benchmarks/figures.py)")
    if not list((folder / "weft" / "engine").glob("_core*.so")):
        raise NoCheckoutError(f"{folder}: its engine is not built ({folder}/setup.py build_ext --inplace)")
    return folder


def run(checkout: Path, compared: Compared, *, quick: bool, realtime: bool = False) -> dict[str, Figure]:
    """Run a benchmark of a checkout; its figures by name. RuntimeError if it fails."""
    arguments = shlex.split(compared.quick if quick else compared.arguments) + ["--realtime"] * realtime
    done = subprocess.run(
        [sys.executable, str(checkout / "benchmarks" / compared.file), "--json", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{checkout}: {compared.file}: exit code {done.returncode}\n{done.stderr}")
    return figures_of(json.loads(done.stdout)["figures"])


def figures_of(rows: Iterable[Mapping[str, object]]) -> dict[str, Figure]:
    """Speeds, times and memory among what a benchmark has printed, by heading and name."""
    found = {}
    heading = ""
    for row in rows:
        name, unit = str(row["name"]), str(row["unit"])
        if not name.startswith(" "):
            heading = name
        key = heading if name == heading else f"{heading.split(',')[0]}: {name.strip()}"
        if unit in _TIMES or unit.endswith(_SIZES_AND_RATES):
            found[key] = Figure(key, float(str(row["value"])), unit)
    return found


def better(first: Figure, second: Figure) -> Figure:
    """The larger rate, the shorter time, the smaller memory."""
    pick = max if first.unit.endswith("/s") else min
    return pick(first, second, key=lambda each: each.value)


def best_of(runs: Iterable[Mapping[str, Figure]]) -> dict[str, Figure]:
    """The best of each figure."""
    best: dict[str, Figure] = {}
    for figures in runs:
        for name, figure in figures.items():
            best[name] = figure if name not in best else better(best[name], figure)
    return best


def compare(other: Path, names: Iterable[str], turns: int, *, quick: bool, realtime: bool = False) -> list[Figure]:
    """The best figures of this checkout; each ratio is to the other's."""
    figures = []
    for name in names:
        runs: list[tuple[dict[str, Figure], dict[str, Figure]]] = []
        for _ in range(turns):
            before, now = (run(each, COMPARED[name], quick=quick, realtime=realtime) for each in (other, ROOT))
            runs.append((before, now))
        best_before, best_now = (best_of(each[side] for each in runs) for side in range(2))
        figures += [
            Figure(found.name, found.value, found.unit, quantity(earlier.value, found.unit), ratio)
            for found in best_now.values()
            if (earlier := best_before.get(found.name)) is not None and earlier.value
            for ratio in [found.value / earlier.value]
        ]
    return figures


def main() -> int:
    """Print the table; the exit status."""
    parser: argparse.ArgumentParser = argument_parser(__doc__)
    parser.add_argument("other", type=Path, metavar="OTHER", help="root of the other checkout")
    parser.add_argument("--turns", type=int, default=3, help="of which the best counts")
    parser.add_argument("--only", nargs="+", choices=COMPARED, default=list(COMPARED), help="these benchmarks")
    parser.add_argument("--quick", action="store_true", help="at sizes of seconds")
    options = parser.parse_args()
    if options.turns < 1:
        parser.error(f"--turns: {options.turns} (valid: 1 or more)")
    try:
        other = require_checkout(options.other.resolve())
    except NoCheckoutError as error:
        print(f"bench_turns: {error}", file=sys.stderr)
        return 3
    figures = compare(other, options.only, options.turns, quick=options.quick, realtime=options.realtime)
    report(f"this checkout compared with {other.name}, in turns", figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
