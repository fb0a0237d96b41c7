"""Write docs/performance.md: run the benchmarks below one after the other, and fill the page's tables in.

    make performance                                       the whole page, half an hour
    .venv/bin/python benchmarks/performance.py [--quick --output FOLDER] [--only NAME…] [--other CHECKOUT] [--realtime]
    .venv/bin/python benchmarks/performance.py --render    the page anew from benchmarks/performance.json, without a run

The text of the page is benchmarks/performance.md.in. There `{{table: NAME, …}}` stands for figures of these benchmarks,
`{{goals}}` for all figures that have a goal, `{{machine}}` and `{{commands}}` for the machine and the run, `{{counts}}`
and `{{parts}}` for benchmarks/gate.json. The figures of a run are kept in benchmarks/performance.json, so that text and
tables can change without a run. A benchmark that the machine cannot run is left out, and the page says why: `--other`
or WEFT_OTHER names a checkout of Weft with a built engine to compare with, WEFT_HTSIM the consortium's simulator.
`--quick` gives each benchmark a size of seconds. Its results do not belong in the repository, nor do those of a part
(`--only`), so both need `--output`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import gate_table
from bench_turns import NoCheckoutError, require_checkout
from figures import Figure, figures_by_full_name, quantity
from peers import MissingPeerError
from peers.adapters.htsim_uec import KIND as HTSIM

from weft.engine import _core
from weft.hints import DISTRIBUTION
from weft.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"
TEMPLATE = BENCHMARKS / "performance.md.in"
RESULTS, PAGE = Path("benchmarks/performance.json"), Path("docs/performance.md")
OTHER_VARIABLE = "WEFT_OTHER"
FAILED = ROOT / "build" / "performance.json"
"""Results of a run in which a benchmark has failed."""


class PageError(Exception):
    """A template or its results do not fit each other."""


def _other_checkout() -> str:
    named = os.environ.get(OTHER_VARIABLE)
    if not named:
        raise LookupError(f"no other checkout is named (`--other` or {OTHER_VARIABLE})")
    try:
        return shlex.quote(str(require_checkout(Path(named).resolve())))
    except NoCheckoutError as error:
        raise LookupError(str(error)) from error


def _simulator() -> str:
    try:
        HTSIM.program()
    except MissingPeerError as error:
        raise LookupError(str(error)) from error
    return ""


def _root() -> str:
    if os.geteuid() != 0:
        raise LookupError("network namespaces need root")
    return ""


@dataclass(frozen=True)
class Declared:
    """A benchmark of the page: its file, its arguments, those for a size of seconds, and the figures to show.

    `shown` are patterns of figures' full names (figures.py), all by default; `*` stands for anything but a colon.
    `label` goes before the names, where several runs of one benchmark share a table. `find` returns further arguments,
    or raises LookupError with the reason to leave the benchmark out.
    """

    file: str
    arguments: str
    quick: str
    shown: tuple[str, ...] = ()
    label: str = ""
    find: Callable[[], str] = lambda: ""

    def patterns(self) -> dict[str, re.Pattern[str]]:
        """The patterns of `shown`, compiled."""
        return {each: re.compile(re.escape(each).replace(r"\*", "[^:]*")) for each in self.shown}

    def command(self, *, quick: bool, realtime: bool = False) -> list[str]:
        """The command line. Raises LookupError if the machine lacks what the benchmark needs."""
        words = shlex.split(f"{self.find()} {self.quick if quick else self.arguments}")
        return [f"benchmarks/{self.file}", *words, *(["--realtime"] if realtime else [])]


_AGGREGATION = ("null program", "contributions", "contributions: additions", "contributions: NumPy's additions")
_SCALE = ("*: built and programmed*", "*: permutation", "*: rate, *", "*: peak memory")
_SCHEDULES = ("*: inside the engine", "*: outside", "*: peak memory")
_TRAINING = (
    "*: operations repeated",
    "*: bytes between hosts skipped",
    "*: packet-hops",
    "*: inside the engine",
    "*: outside",
    "*: rate",
    "*: peak memory",
)
_QUICK_STEP = "--pipeline 2 --data 2 --layers 2 --micro-batches 2 --shrink 16"

DECLARED = {
    "turns": Declared(
        "bench_turns.py",
        "--turns 2",
        "--turns 1 --quick",
        (
            "* hosts, swift, spray",
            "*: processor time of the run",
            "*: of processor time",
            "* endpoints, * switches",
            "*: built and programmed*",
            "*: peak memory",
        ),
        find=_other_checkout,
    ),
    "peers": Declared("bench_peers.py", "--turns 2", "--turns 1 --quick --cases incast", find=_simulator),
    "pipeline": Declared(
        "bench_pipeline.py",
        "",
        "--packets 2000",
        ("null program", "fabric.p4, *", "*: compared with *"),
    ),
    **{
        f"aggregation {lanes}": Declared(
            "bench_aggregation_switch.py",
            f"--lanes {lanes}",
            f"--lanes {lanes} --packets 2000",
            _AGGREGATION,
            label=f"{lanes} lanes",
        )
        for lanes in (64, 256, 1024)
    },
    "bursts": Declared("bench_hops.py", "--leaves 8 32 64 --rounds 12", "--leaves 4 --rounds 1 --workers 1"),
    "permutation": Declared("bench_permutation.py", "--rounds 3", "--hosts 16 --bytes 20000 --rounds 1"),
    **{
        f"websearch {name}": Declared(
            "bench_websearch.py",
            f"--congestion-control {name}",
            f"--congestion-control {name} --duration-us 20",
            ("websearch, *", "*: of processor time", "*: link traversals", "*: link traversals a second"),
        )
        for name in ("fixed-window", "hpcc")
    },
    "hosts": Declared("bench_hosts.py", "", "--queue-pairs 2 --megabytes 2"),
    "scale": Declared(
        "bench_scale.py",
        "--sizes 1024 16384 --workers 2",
        "--fabric '{k: 4}' --bytes 4096 --workers 1",
        _SCALE,
    ),
    "fat tree": Declared(
        "bench_scale.py",
        "--fabric '{k: 32}' --setup-only",
        "--fabric '{k: 4}' --setup-only",
        ("*: built and programmed*", "*: peak memory"),
    ),
    "collectives": Declared(
        "bench_schedules.py",
        "--ranks 64 256 1024 --data lengths",
        "--ranks 64 --bytes 16384 --data lengths",
        _SCHEDULES,
    ),
    "verified": Declared(
        "bench_schedules.py",
        "--ranks 64 256 --data random",
        "--ranks 64 --bytes 16384 --data random",
        _SCHEDULES,
    ),
    "step": Declared(
        "bench_training_job.py",
        "--pipeline 2 --data 4 --layers 4 --micro-batches 16",
        _QUICK_STEP,
        _TRAINING[2:],
        label="packets",
    ),
    "repeated step": Declared(
        "bench_training_job.py",
        "--pipeline 2 --data 4 --layers 4 --micro-batches 16 --fast-forward 3%",
        f"{_QUICK_STEP} --fast-forward 3%",
        _TRAINING,
        label="fast-forward",
    ),
    "goal": Declared("bench_traces.py", "--format goal", "--nodes 2000 --format goal"),
    "chakra": Declared("bench_traces.py", "--format chakra", "--nodes 2000 --format chakra"),
    "start": Declared(
        "bench_start.py",
        "--repetitions 3",
        "--repetitions 1",
        ("one process, *", "two processes, *", "*: cold", "weft run *"),
    ),
    "veth": Declared("bench_switch.py", "--seconds 0.5", "--bytes 128 --seconds 0.05 --paths one", find=_root),
    "tables": Declared("bench_tables.py", "", ""),
}
"""The page's benchmarks, in the order in which they run."""

COUNT_GOALS = {("permutation", "instructions"): 1900.0, ("permutation", "last-level misses"): 14.0}
"""The most that a packet-hop should take, by run and count of the gate."""

PARTS = {
    "P4 program": ("P4 program",),
    "switch around it, tables": ("engine/switch",),
    "ports, links, delay lines": ("engine/links",),
    "events, partitions": ("engine/time",),
    "packets, headers, iCRC": ("engine/packets",),
    "hosts, congestion control": ("engine/hosts", "engine/congestion"),
    "prefetching, memory": ("engine/memory",),
}
"""Folders of benchmarks/gate.json by the part of a packet-hop; all others are libraries and the rest."""


@dataclass(frozen=True)
class Measured:
    """The figures of a benchmark under full names, or the reason why there are none."""

    command: str
    seconds: float
    figures: tuple[Figure, ...]
    missing: str = ""


@dataclass(frozen=True)
class Run:
    """A run of the page's benchmarks: the machine and the run by name of a property, and results by benchmark."""

    machine: Mapping[str, str]
    measured: Mapping[str, Measured]

    @classmethod
    def read(cls, path: Path) -> Run:
        """The run in a file. Raises PageError."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            measured = {
                name: Measured(**{**each, "figures": tuple(Figure(**figure) for figure in each["figures"])})
                for name, each in raw["measured"].items()
            }
            return cls(raw["machine"], measured)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PageError(f"{path}: no results of a run ({error}); `make performance` writes them") from error

    def write(self, path: Path) -> None:
        """Write it to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def shown(declared: Declared, figures: Sequence[Figure]) -> list[Figure]:
    """Figures that the benchmark's patterns name, in its order, labelled. PageError if a pattern has none."""
    wanted = declared.patterns()
    for pattern, each in wanted.items():
        if not any(each.fullmatch(figure.name) for figure in figures):
            names = "; ".join(figure.name for figure in figures)
            raise PageError(f"{declared.file} printed no figure {pattern!r} (it printed: {names})")
    if not figures:
        raise PageError(f"{declared.file} printed no figures")
    label = f"{declared.label}, " if declared.label else ""
    return [
        replace(figure, name=f"{label}{figure.name}")
        for figure in figures
        if not wanted or any(each.fullmatch(figure.name) for each in wanted.values())
    ]


def _kept(figure: Figure) -> Figure:
    """A figure to four digits, so that a run's file does not pretend to more."""
    return replace(
        figure,
        value=_rounded(figure.value),
        ratio=None if figure.ratio is None else _rounded(figure.ratio),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def run_one(declared: Declared, *, quick: bool, realtime: bool = False) -> Measured:
    """Run a benchmark. RuntimeError if it fails, PageError if it prints no such figures."""
    try:
        command = declared.command(quick=quick, realtime=realtime)
    except LookupError as lacking:
        return Measured(f"benchmarks/{declared.file}", 0.0, (), missing=str(lacking))
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command, "--json"],
        cwd=ROOT,
        # An installed Weft has its bytecode; processes that a benchmark starts find it here.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "pycache")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr}")
    figures = tuple(map(_kept, figures_by_full_name(json.loads(done.stdout)["figures"])))
    shown(declared, figures)  # a pattern without a figure is found now, not after the run
    # The page is the same wherever checkouts lie.
    printed = shlex.join([word if not word.startswith("/") else "OTHER" for word in command])
    return Measured(printed, round(time.monotonic() - began_s, 1), figures)


def run(names: Sequence[str], *, quick: bool, realtime: bool) -> tuple[Run, list[str]]:
    """Run these benchmarks; the run, and what failed."""
    load, commit = _load_average(), _output(["git", "describe", "--always", "--dirty"])
    began = datetime.now(UTC)
    measured, failures = {}, []
    for number, name in enumerate(names, start=1):
        print(f"{datetime.now(UTC):%H:%M:%S} {number} of {len(names)}: {name}", flush=True)
        try:
            measured[name] = run_one(DECLARED[name], quick=quick, realtime=realtime)
        except (RuntimeError, PageError) as error:
            failures.append(f"{name}: {error}")
    minutes = (datetime.now(UTC) - began).total_seconds() / 60
    machine = {
        **machine_properties(),
        "Weft": f"{metadata.version(DISTRIBUTION)}, commit {commit}",
        "run": f"{began:%Y-%m-%d %H:%M} UTC, {minutes:.0f} minutes{', at small sizes' if quick else ''}",
        "priority": "real time (--realtime)" if realtime else "normal",
        "load average (1, 5, 15 minutes) at start, at end": f"{load}; {_load_average()}",
    }
    return Run(machine, measured), failures


def machine_properties() -> dict[str, str]:
    """The machine, and the versions of what the engine is built and run with."""
    processor = re.search(r"^model name\s*: (.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    hypervisor = " (virtual machine)" if re.search(r"^flags.*\bhypervisor\b", _text("/proc/cpuinfo"), re.M) else ""
    compiler, optimised = gate_table.engine_compiler(Path(_core.__file__).read_bytes())
    return {
        "processor": f"{processor[1] if processor else platform.machine()}, {os.cpu_count()} cores{hypervisor}",
        "caches": ", ".join(_caches()) or "unknown",
        "memory": f"{int(memory[1]) / (1 << 20):.1f} GiB" if memory else "unknown",
        "kernel": f"{platform.system()} {platform.release()}",
        "compiler": f"{compiler}, link-time optimisation {optimised}",
        "Python": platform.python_version(),
    }


def _caches() -> Iterable[str]:
    """Yield the first core's caches: level, kind, size, and which cores share each."""
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_text(folder / name).strip() for name in ("level", "type", "size"))
        sharing = _text(folder / "shared_cpu_list").strip()
        share = "" if sharing == "0" else f" (cores {sharing})"
        letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
        yield f"L{level}{letter} {size.removesuffix('K')} KiB{share}"


def _text(path: Path | str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _load_average() -> str:
    return ", ".join(f"{load:.2f}" for load in os.getloadavg())


def render(run_: Run, template: str, table: gate_table.Table) -> str:
    """The page. Raises PageError if the template names what there is not, or leaves a benchmark of the run out."""
    used: set[str] = set()

    def fill(placeholder: re.Match[str]) -> str:
        word, *names = [each.strip() for each in placeholder[1].split(":")]
        if word == "table" and len(names) == 1:
            wanted = [name.strip() for name in names[0].split(",")]
            used.update(wanted)
            return _tables(run_, wanted)
        made: dict[str, Callable[[], str]] = {
            "machine": lambda: _grid(("", ""), run_.machine.items()),
            "goals": lambda: _goals(run_, table),
            "commands": lambda: _commands(run_),
            "counts": lambda: _counts(table),
            "parts": lambda: _parts(table),
        }
        if word not in made or names:
            raise PageError(
                f"{TEMPLATE.name}: {placeholder[0]} (valid: {{{{table: NAME, …}}}}, machine, goals, commands, "
                "counts, parts)"
            )
        return made[word]()

    page = re.sub(r"\{\{(.*?)\}\}", fill, template)
    if left_out := [name for name in run_.measured if name not in used]:
        raise PageError(f"{TEMPLATE.name}: no table has {', '.join(left_out)}")
    return page


def _tables(run_: Run, names: Sequence[str]) -> str:
    """One table for the figures of all, and a line for each benchmark without figures."""
    for name in names:
        if name not in DECLARED:
            raise PageError(f"{TEMPLATE.name}: no benchmark {name!r} (valid: {', '.join(DECLARED)})")
    found = {name: run_.measured.get(name) for name in names}
    figures = [figure for name in names if name in run_.measured for figure in _shown_of(run_, name)]
    lines = [_figure_table(figures)] if figures else []
    for name, each in found.items():
        if each is None:
            lines.append(f"`{DECLARED[name].file}` was not part of this run.")
        elif each.missing:
            lines.append(f"Not measured in this run: {each.missing}.")
    return "\n\n".join(lines)


def _shown_of(run_: Run, name: str) -> list[Figure]:
    each = run_.measured[name]
    return [] if each.missing else shown(DECLARED[name], each.figures)


def _figure_table(figures: Sequence[Figure]) -> str:
    """A row for each figure; a name does not repeat the heading above it. Columns that no figure has are left out."""
    rows = []
    heading = ""
    for figure in figures:
        if heading and figure.name.startswith(f"{heading}: "):
            name = f"– {figure.name.removeprefix(f'{heading}: ')}"
        else:
            name = heading = figure.name
        rows.append((name, quantity(figure.value, figure.unit), _ratio(figure), _goal(figure)))
    headings = ("", "measured", "ratio to", "goal")
    kept = [column for column in range(4) if column < 2 or any(row[column] for row in rows)]
    return _grid([headings[column] for column in kept], ([row[column] for column in kept] for row in rows))


def _ratio(figure: Figure) -> str:
    if figure.ratio is None:
        return ""
    return f"{quantity(figure.ratio, '×')} {figure.beside}".strip()


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    unit = figure.unit if figure.ratio is None else "×"
    sign = "≤" if figure.at_most else "≥"
    return f"{sign} {quantity(figure.goal, unit)}, {'reached' if figure.reached else '**missed**'}"


def _goals(run_: Run, table: gate_table.Table) -> str:
    """All figures that have a goal."""
    counted = [
        Figure(f"{name}: {count} of a packet-hop", table.runs[name].counts[count], "", goal=goal, at_most=True)
        for (name, count), goal in COUNT_GOALS.items()
    ]
    with_goal = [
        (name, figure) for name in run_.measured for figure in _shown_of(run_, name) if figure.goal is not None
    ]
    rows = [
        (name, figure.name, _ratio(figure) or quantity(figure.value, figure.unit), _goal(figure))
        for name, figure in [*with_goal, *(("counts", figure) for figure in counted)]
    ]
    return _grid(("benchmark", "figure", "measured", "goal"), rows)


def _commands(run_: Run) -> str:
    """Every command of the run and how long it took."""
    rows = [(name, f"`{each.command}`", f"{each.seconds:.0f} s") for name, each in run_.measured.items()]
    return _grid(("benchmark", "command", "wall clock"), rows)


def _engine_runs(table: gate_table.Table) -> dict[str, gate_table.Measured]:
    return {name: each for name, each in table.runs.items() if each.kind == gate_table.ENGINE_COUNTS}


def _counts(table: gate_table.Table) -> str:
    """Counts that have no parts, of whole commands."""
    rows = [
        (name, count, quantity(value, ""))
        for name, each in table.runs.items()
        if each.kind != gate_table.ENGINE_COUNTS
        for count, value in each.counts.items()
    ]
    return _grid(("run", "counted", ""), rows)


def _parts(table: gate_table.Table) -> str:
    """Instructions of a packet-hop by part, and all counts of it, a column for each run."""
    runs = _engine_runs(table)
    named = {folder for folders in PARTS.values() for folder in folders}

    def of(folders: Callable[[str], bool], each: gate_table.Measured) -> str:
        return f"{sum(value for folder, value in each.folders.items() if folders(folder)):,.0f}"

    rows = [(part, *(of(folders.__contains__, each) for each in runs.values())) for part, folders in PARTS.items()]
    rows.append(("libraries, the rest", *(of(lambda folder: folder not in named, each) for each in runs.values())))
    for count in dict.fromkeys(count for each in runs.values() for count in each.counts):
        name = f"**all {count}**" if count == "instructions" else count
        rows.append((name, *(f"{each.counts[count]:,.4g}" for each in runs.values())))
    return _grid(("a packet-hop of", *runs), rows)


def _grid(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("|" + "".join(f" {cell} |" if cell else " |" for cell in line) for line in lines)


def write_page(folder: Path = ROOT) -> None:
    """Write the page below a folder from the results there. Raises PageError, TableError."""
    page = folder / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    results, table = Run.read(folder / RESULTS), gate_table.Table.read(gate_table.TABLE)
    page.write_text(render(results, TEMPLATE.read_text(encoding="utf-8"), table), encoding="utf-8")


def main() -> int:
    """Run and write; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="write the page from the last run's results")
    parser.add_argument("--quick", action="store_true", help="sizes of seconds; needs --output")
    parser.add_argument("--only", nargs="+", choices=DECLARED, metavar="NAME", help="these benchmarks; needs --output")
    parser.add_argument("--output", type=Path, default=ROOT, metavar="FOLDER", help="the repository by default")
    parser.add_argument("--other", type=Path, metavar="CHECKOUT", help=f"to compare with, in place of {OTHER_VARIABLE}")
    parser.add_argument("--realtime", action="store_true", help="before all ordinary processes (SCHED_RR)")
    options = parser.parse_args()
    folder = options.output.resolve()
    if (options.quick or options.only) and folder == ROOT:
        parser.error("--quick and --only need --output: the repository's page is one of a whole run")
    if options.other is not None:
        os.environ[OTHER_VARIABLE] = str(options.other)
    try:
        if not options.render:
            found, failures = run(options.only or list(DECLARED), quick=options.quick, realtime=options.realtime)
            if failures:
                found.write(FAILED)
                print("\n".join([*failures, f"performance: no page; results are in {FAILED}"]), file=sys.stderr)
                return 1
            found.write(folder / RESULTS)
        write_page(folder)
    except (PageError, gate_table.TableError) as error:
        print(f"performance: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
