"""What a run found, as data and as tables."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table

from weft.errors import EnvironmentLacksError
from weft.recording.observations import Observations
from weft.recording.trace import Moments
from weft.results.arrays import MAX_ROWS_IN_RESULTS, ArrayResults
from weft.results.credits import CreditResult, print_credits
from weft.results.figure_tables import print_figures
from weft.results.flows import FlowsResult, print_flows, records_file
from weft.results.link_events import LinkEventResult, print_link_events
from weft.results.link_faults import LinkFaultsResult, print_link_faults
from weft.results.packet_conservation import print_ledger
from weft.results.switch_memory import MemoryResult, print_memory
from weft.results.training_steps import TrainingStepResult, print_training_steps
from weft.results.workloads import WorkloadResult, print_workload
from weft.system.writing import written_whole
from weft.topologies.describe import format_rate, format_time

if TYPE_CHECKING:
    from weft.engine._core import Ledger

# A packet served this much of a round trip too late may already have changed what the transport does.
LATENESS_BOUND = 0.5


LENGTHS = "lengths"
"""What stands for data where packets carry lengths only: nothing can be verified then."""


@dataclass(frozen=True)
class CollectiveResult:
    """One collective: nccl-tests' figures and how the result compared with NumPy's.

    `size_bytes` is that of the larger of input and result, `count` the elements that a rank gives or gets of another.
    `verified` is false where lengths stood for data; `wrong` and the errors are 0 then. Bandwidths are in bytes per
    second of emulated time; a time is from the common start to the last rank's end. `times_ps` are those of all
    repetitions, `time_ps` is their mean; packets are counted over all of them, and over none of the `warmup`.
    They are 0 where no time passed, as with one rank, which has nothing to send. `title` and `reduces` are the
    collective's own and no part of the results file.
    """

    collective: str
    algorithm: str
    size_bytes: int
    count: int
    dtype: str
    operation: str
    ranks: int
    time_ps: int
    wrong: int
    identical: bool
    largest_error: float
    error_bound: float
    packets_aggregated: int
    retransmissions: int
    data: str = "random"
    root: int | None = None
    verified: bool = True
    cnps: int = 0
    times_ps: tuple[int, ...] = ()
    warmup: int = 0
    busbw_bytes_per_s: float = 0.0
    title: str = field(default="", compare=False, repr=False)
    reduces: bool = field(default=True, compare=False, repr=False)

    @property
    def algorithm_bandwidth(self) -> float:
        """Return S / t in bytes per second."""
        return self.size_bytes / (self.time_ps * 1e-12) if self.time_ps else 0.0

    @property
    def least_time_ps(self) -> int:
        """Return the shortest repetition's time."""
        return min(self.times_ps, default=self.time_ps)

    @property
    def largest_time_ps(self) -> int:
        """Return the longest repetition's time."""
        return max(self.times_ps, default=self.time_ps)

    @property
    def ok(self) -> bool:
        """Return whether nothing is known to be wrong on any rank."""
        return self.wrong == 0 and self.identical

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the derived figures."""
        plain = {
            name: value
            for name, value in vars(self).items()
            if name not in ("title", "reduces", "busbw_bytes_per_s")
        }
        if not math.isfinite(self.largest_error):
            # JSON knows no NaN and no infinity; `wrong` says what happened.
            plain["largest_error"] = None
        return plain | {
            "least_time_ps": self.least_time_ps,
            "largest_time_ps": self.largest_time_ps,
            "algbw_bytes_per_s": self.algorithm_bandwidth,
            "busbw_bytes_per_s": self.busbw_bytes_per_s,
        }


@dataclass(frozen=True)
class PlaneResult:
    """What happened in one plane, over the whole run; None for what the target does not say (BMv2)."""

    plane: int
    ecn_marked_packets: int
    largest_queue_bytes: int | None
    largest_queue_port: str
    packets_aggregated: int
    tail_drops: int | None
    injected_losses: int | None
    corrupted_packets: int | None = None


@dataclass(frozen=True)
class IntHop:
    """One hop of a path as INT saw it."""

    hop: int
    switch: str
    rate_bps: int
    queue_bytes: int
    timestamp_ns: int
    tx_bytes: int


@dataclass(frozen=True)
class IntPath:
    """INT's view of a path, from the stack that a receiver echoed.

    `coarse`: the switches' clocks are their own and tell microseconds (BMv2), so times of two hops do not compare.
    """

    source: str
    destination: str
    plane: int
    hops: tuple[IntHop, ...]
    coarse: bool = False


@dataclass(frozen=True)
class Lateness:
    """How far behind events were served, in emulated picoseconds, over all processes of the lab."""

    largest_ps: int
    percentile_99_ps: int
    path_rtt_ps: int
    dilation: float

    @property
    def valid(self) -> bool:
        """Return whether the 99th percentile lies within `LATENESS_BOUND` of the path's round-trip time."""
        return self.percentile_99_ps <= LATENESS_BOUND * self.path_rtt_ps

    @property
    def sufficient_dilation(self) -> float:
        """Return the dilation at which this machine would serve events within the bound, rounded up.

        Delays of the kernel last as long on the wall clock at any dilation, so twice the dilation halves them in
        emulated time. A backlog is otherwise: it grows while events need more time than there is, and is gone a little
        above the dilation that gives them enough. Then most events are about as late as the latest one, and what is
        needed lies between this dilation and the one that delays of the kernel would need; the estimate is their
        geometric mean. Beyond the bound it is at least twice this one. (Lab 2 on two cores: 16, 14 and 3 times the
        bound at 500, 1,000 and 1,500; within it from 2,000 on.) Far below what is needed hosts wait for each other,
        which hides some of it.
        """
        excess = self.percentile_99_ps / (LATENESS_BOUND * self.path_rtt_ps)
        if excess <= 0:
            return 1.0
        is_backlog = excess > 1 and self.percentile_99_ps >= self.largest_ps / 2
        factor = math.sqrt(excess) if is_backlog else excess
        # Just beyond the bound a backlog is near: a little more time may meet one that a little less did not.
        needed = self.dilation * (max(2.0, factor) if excess > 1 else factor)
        scale = math.pow(10, math.floor(math.log10(needed)))
        return max(1.0, math.ceil(needed / scale * 2) / 2 * scale)


@dataclass(frozen=True)
class Phase:
    """One run of the traffic: from the first host's start to the last one's end, in emulated time.

    `run` is its number in the tables of `observe`.
    """

    name: str
    start_ps: int
    end_ps: int
    run: int = 0


@dataclass
class RunResult:
    """All that a run found, and what made it."""

    made_by: dict[str, Any]
    collectives: list[CollectiveResult] = field(default_factory=list)
    flows: list[FlowsResult] = field(default_factory=list)
    workloads: list[WorkloadResult] = field(default_factory=list)
    training_steps: list[TrainingStepResult] = field(default_factory=list)
    planes: list[PlaneResult] = field(default_factory=list)
    int_paths: list[IntPath] = field(default_factory=list)
    memory: list[MemoryResult] = field(default_factory=list)
    credits: list[CreditResult] = field(default_factory=list)
    link_faults: list[LinkFaultsResult] = field(default_factory=list)
    arrays: ArrayResults = field(default_factory=ArrayResults)
    drops: dict[str, int] = field(default_factory=dict)
    absorbed: dict[str, int] = field(default_factory=dict)
    ledger: Ledger | None = None
    link_events: list[LinkEventResult] = field(default_factory=list)
    retransmissions: int = 0
    cnps: int = 0
    lateness: Lateness | None = None
    incomplete_captures: list[str] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    observations: Observations = field(default_factory=Observations)
    wall_times_s: dict[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether every collective and every training step gave the right result."""
        return all(each.ok for each in self.collectives) and all(each.ok for each in self.training_steps)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with the derived figures and without times of the wall clock."""
        data = asdict(
            replace(
                self,
                observations=Observations(),
                workloads=[],
                flows=[],
                collectives=[],
                arrays=ArrayResults(),
            )
        )
        del data["observations"], data["arrays"]  # in files of their own
        for name, cells in (("counters", self.arrays.counters), ("registers", self.arrays.registers)):
            if 0 < len(cells) <= MAX_ROWS_IN_RESULTS:
                data[name] = [asdict(cell) for cell in cells]
        data["rows_lost"] = self.observations.rows_lost
        if not self.incomplete_captures:
            del data["incomplete_captures"]
        data["collectives"] = [collective.as_dict() for collective in self.collectives]
        data["flows"] = [flows.as_dict() for flows in self.flows]
        data["workloads"] = [workload.as_dict() for workload in self.workloads]
        data["link_events"] = [
            asdict(event) | {"recovery_ps": event.recovery_ps} for event in self.link_events
        ]
        data["training_steps"] = [step.as_dict() for step in self.training_steps]
        # Kept apart: under the virtual clock all the rest is the same in every run.
        del data["wall_times_s"]
        if self.lateness is not None:
            data["lateness"]["valid"] = self.lateness.valid
            data["lateness"]["sufficient_dilation"] = self.lateness.sufficient_dilation
        data["ok"] = self.ok
        return data

    def require_complete(self) -> None:
        """Raise EnvironmentLacksError if a capture is not whole."""
        if self.incomplete_captures:
            raise EnvironmentLacksError("; ".join(self.incomplete_captures))

    def save(self, directory: Path) -> Path:
        """Write results.json into a directory and return its path; beside it wall_times.json and tables of flows."""
        directory.mkdir(parents=True, exist_ok=True)
        for number, workload in enumerate(self.workloads):
            workload.save_records(directory / f"workload-{number}-flows.csv")
        for number, flows in enumerate(self.flows):
            flows.save_records(directory / records_file(number))
        for name, data in (("wall_times.json", self.wall_times_s), ("results.json", self.as_dict())):
            path = directory / name
            with written_whole(path) as partial:
                partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        self.observations.save(directory, self._moments())
        return path

    def _moments(self) -> Moments:
        happened = [(each, each.happened_ps) for each in self.link_events]
        return Moments(
            [(phase.name, phase.start_ps, phase.end_ps) for phase in self.phases],
            [(f"{each.link} {each.state}", time_ps) for each, time_ps in happened if time_ps is not None],
        )


def make_console() -> Console:
    """Return a console for tables; where there is no terminal to fit them to, lines may be long."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def _table(*columns: str) -> Table:
    """Return a table without lines, its columns (in which numbers stand) aligned to the right."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap="\n" not in column, vertical="bottom")
    return table


def print_collectives(console: Console, results: list[CollectiveResult]) -> None:
    """Print nccl-tests' columns, one row per algorithm and size (times µs, bandwidths GB/s).

    Where there were repetitions, the time is their mean, and the least and the largest stand beside it.
    """
    repeated = any(len(result.times_ps) > 1 for result in results)
    table = _table(
        "algorithm", "size\n(B)", "count", "type", "redop", "root",
        *(("mean\n(µs)", "least\n(µs)", "largest\n(µs)") if repeated else ("time\n(µs)",)),
        "algbw\n(GB/s)", "busbw\n(GB/s)", "#wrong", "error", "bound", "retransmitted\npackets",
    )  # fmt: skip
    for result in results:
        # nccl-tests' words for what does not apply: no operation, no root.
        exact = result.error_bound == 0.0
        times_ps = [result.time_ps]
        if repeated:
            times_ps += [result.least_time_ps, result.largest_time_ps]
        table.add_row(
            result.algorithm,
            str(result.size_bytes),
            str(result.count),
            result.dtype,
            result.operation if result.reduces else "none",
            str(-1 if result.root is None else result.root),
            *(f"{time_ps / 1e6:.1f}" for time_ps in times_ps),
            f"{result.algorithm_bandwidth / 1e9:.2f}",
            f"{result.busbw_bytes_per_s / 1e9:.2f}",
            *_verdict(result, exact),
            str(result.retransmissions),
        )
    console.print(table)
    for count, warmup in sorted({(len(result.times_ps), result.warmup) for result in results}):
        if count > 1 or warmup:
            console.print(f"of {count} repetitions, after {warmup} to warm up")


def _verdict(result: CollectiveResult, exact: bool) -> tuple[str, str, str]:
    if not result.verified:
        return "N/A", "not verified", ""
    wrong = str(result.wrong) if result.identical else f"{result.wrong}, ranks differ"
    if exact and result.ok:
        return wrong, "exact", ""
    return wrong, f"{result.largest_error:.2g}", "" if exact else f"{result.error_bound:.2g}"


def show_run(run: RunResult, as_json: bool) -> None:
    """Print a run on standard output: as JSON, or as tables."""
    if as_json:
        print(json.dumps(run.as_dict(), indent=1))
    else:
        print_run(make_console(), run)


class _InvalidConsole:
    """A console that marks what it prints: times, rates and counts of a run whose events were served too late."""

    _MARK = "[bold red]INVALID[/bold red]"

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, what: Any = "", *arguments: Any, **options: Any) -> None:
        """Print a table as it is, whose heading has the mark, and mark every line of text."""
        if isinstance(what, str) and what.strip() and self._MARK not in what:
            start = len(what) - len(what.lstrip("\n"))
            what = f"{what[:start]}{self._MARK} {what[start:]}"
        self._console.print(what, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console, name)


def print_run(console: Console, run: RunResult) -> None:
    """Print all tables of a run; if its times mean nothing, the first line says so, and all others bear a mark."""
    if run.lateness is not None and not run.lateness.valid:
        console = cast("Console", _InvalidConsole(console))
        console.print("the machine served events too late: times, rates and queues below do not hold")
    for name, results in groupby(run.collectives, key=lambda result: result.collective):
        of_one_kind = list(results)
        title = of_one_kind[0].title or name
        console.print(f"\n[bold]{title} over {of_one_kind[0].ranks} ranks[/bold] (time is emulated)")
        print_collectives(console, of_one_kind)
    for number, flows in enumerate(run.flows):
        print_flows(console, number, flows)
    if run.training_steps:
        print_training_steps(console, run.training_steps)
    for workload in run.workloads:
        print_workload(console, workload)
    _print_planes(console, run.planes)
    print_memory(console, run.memory)
    print_credits(console, run.credits)
    print_link_faults(console, run.link_faults)
    print_link_events(console, run.link_events)
    for path in run.int_paths:
        _print_int_path(console, path)
    if run.drops:
        console.print(
            "\n[bold]drops[/bold]: " + ", ".join(f"{name} {count}" for name, count in run.drops.items())
        )
    if run.observations.rows_lost:
        console.print(
            f"\n[bold]incomplete[/bold]: {run.observations.rows_lost} rows were beyond what a probe keeps; sample less "
            "often, or fewer ports"
        )
    console.print(f"\nretransmitted packets: {run.retransmissions}; CNPs: {run.cnps}")
    print_ledger(console, run.ledger, run.absorbed)
    if run.lateness is not None:
        _print_lateness(console, run.lateness)


def _print_planes(console: Console, planes: list[PlaneResult]) -> None:
    columns = (
        "plane", "ECN\nmarks", "largest queue (B)", "at", "packets\naggregated", "tail\ndrops", "lost by\nfault",
        "corrupted",
    )  # fmt: skip
    rows = [
        (
            str(plane.plane),
            str(plane.ecn_marked_packets),
            _figure(plane.largest_queue_bytes),
            plane.largest_queue_port,
            str(plane.packets_aggregated),
            _figure(plane.tail_drops),
            _figure(plane.injected_losses),
            _figure(plane.corrupted_packets),
        )
        for plane in planes
    ]
    print_figures(console, "[bold]planes[/bold]", columns, rows)


def _figure(value: int | None) -> str:
    """Return a number as text, a dash where the target does not say."""
    return "-" if value is None else str(value)


def _print_int_path(console: Console, path: IntPath) -> None:
    table = Table(title=None, box=None, pad_edge=False)
    for column in ("hop", "switch", "rate", "queue (B)", "timestamp\n(ns mod 2^24)", "sent\n(B mod 2^27)"):
        table.add_column(column, justify="right")
    for hop in path.hops:
        table.add_row(
            str(hop.hop),
            hop.switch,
            format_rate(hop.rate_bps),
            str(hop.queue_bytes),
            str(hop.timestamp_ns),
            str(hop.tx_bytes),
        )
    label = " (coarse: each switch has its own clock, in microseconds)" if path.coarse else ""
    console.print(f"\n[bold]INT[/bold] {path.source} → {path.destination}, plane {path.plane}{label}")
    console.print(table)


def _print_lateness(console: Console, lateness: Lateness) -> None:
    share = lateness.percentile_99_ps / lateness.path_rtt_ps
    text = (
        f"lateness: 99th percentile {format_time(lateness.percentile_99_ps)} ({share:.0%} of the path's RTT, "
        f"{format_time(lateness.path_rtt_ps)}), largest {format_time(lateness.largest_ps)}"
    )
    if lateness.valid:
        console.print(text)
    else:
        console.print(
            f"[bold red]INVALID[/bold red] {text}; the bound is {LATENESS_BOUND:.0%} of the RTT: "
            f"a dilation of {lateness.sufficient_dilation:g} would do on this machine"
        )
