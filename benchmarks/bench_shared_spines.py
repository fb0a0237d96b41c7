"""Ten jobs that reduce in the network over shared spines: by placement of their trees, and when a spine dies.

    .venv/bin/python benchmarks/bench_shared_spines.py [--jobs N] [--size BYTES] [--placements NAME…] [--default-ecn]
        [--picture FILE.svg] [--json]

Four leaves of a host of every job, five spines, links of 400 Gb/s from hosts and as much from a leaf to all spines
together, of 250 ns each. Each job all-reduces random int32 with its host at every leaf, all from the same moment, in
packets of 256 lanes; the slots of a switch are shared out evenly. Queues mark from 40 KB on, all packets from 160 KB.
Results are compared with NumPy's. Virtual time, so the machine does not matter.

- alone: one job.
- undisturbed: all, for each placement (`aggregation.placement`).
- spine dies: all again, and the spine with the most trees loses its links halfway through the first job. The controller
  notices after 5 µs, and a request and its answer take it 10 µs. A job's pause is the longest time in which its first
  leaf sent its worker nothing, in steps of 1 µs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path

import numpy as np
from curves import Panel, svg_of
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from weft import Fabric
from weft.controller.placement import PLACEMENTS
from weft.jobs.plain_jobs import collectives_job
from weft.recording.observations import ports_table
from weft.recording.tables import Table as ObservedTable
from weft.run.jobs import JobRun, PlacedJob
from weft.scenario import AggregationSection, ControlSection, EcnSection, ObserveSection
from weft.topologies import FabricSpec, leaf_spine
from weft.topologies.fabric import DEFAULT_TREE_CHILDREN
from weft.traffic.aggregation_format import LANE_COUNT, Operation
from weft.traffic.jobs import CollectiveCall
from weft.traffic.schedule_nodes import DataType

LEAVES, SPINES = 4, 5
HOST_RATE_BPS = 400 * 10**9
DELAY_PS = 250_000
QUEUE_CAPACITY_BYTES = 4 << 20
LANES = 256
SWITCH_LANES = 4096 * LANE_COUNT
"""Of all slots of a switch."""
CONTROL = ControlSection(latency=10 * 10**6, detection=5 * 10**6)
ECN = EcnSection(kmin=40_000, kmax=160_000, pmax=0.2)
SAMPLE_PS = 10**6
RATE_PS = 5 * SAMPLE_PS
JOBS, SIZE_BYTES = 10, 16 << 20
TIMEOUT_S = 100.0
"""Of emulated time."""


@dataclass(frozen=True)
class JobOutcome:
    """What a job took.

    `root` is the spine of its tree at the end, `moved` whether that was another one before; `pause_us` its longest time
    without results, `rates` what its first worker received, in Gb/s by time in µs.
    """

    root: str
    time_us: float
    goodput_gbps: float
    pause_us: float
    exact: bool
    moved: bool
    rates: tuple[tuple[float, float], ...] = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """Jobs that ran at the same time; `fullest_uplink` is the share of its rate until the last one's end.

    `failed` is a spine that died, `failed_us` after the jobs' start; `sent_again` counts messages of the jobs on it.
    """

    case: str
    placement: str
    jobs: tuple[JobOutcome, ...]
    trees: dict[str, int]
    fullest_uplink: float
    failed: str = ""
    failed_us: float = 0.0
    sent_again: int = 0

    @property
    def fairness(self) -> float:
        """Jain's index of the jobs' goodputs (Jain, Chiu and Hawe, DEC-TR-301, 1984)."""
        shares = [each.goodput_gbps for each in self.jobs]
        return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))

    @property
    def sum_gbps(self) -> float:
        """The jobs' goodputs together."""
        return sum(each.goodput_gbps for each in self.jobs)


def fabric_of(jobs: int) -> FabricSpec:
    """A host of every job below each leaf, and no oversubscription."""
    return leaf_spine(
        planes=1,
        leaves=LEAVES,
        spines=SPINES,
        hosts_per_leaf=jobs,
        host_rate_bps=HOST_RATE_BPS,
        oversubscription=1.0,
        delay_ps=DELAY_PS,
        queue_capacity_bytes=QUEUE_CAPACITY_BYTES,
    )


def outcomes_of(
    placement: str,
    jobs: int = JOBS,
    size_bytes: int = SIZE_BYTES,
    running: int | None = None,
    ecn: EcnSection = ECN,
) -> list[Outcome]:
    """Run jobs undisturbed, then once more while a spine dies; with `running` only so many of them, undisturbed."""
    topology = fabric_of(jobs)
    with Fabric(
        topology,
        clock="virtual",
        seed=1,
        int_telemetry=False,
        slots=SWITCH_LANES // LANES // jobs,
        aggregation=AggregationSection(lanes=LANES, placement=placement),
        control=CONTROL,
        ecn=ecn,
        observe=ObserveSection(interval=SAMPLE_PS, queues=[f"p0l0:{job + 1}" for job in range(jobs)]),
    ) as fabric:
        runs = _Runs(fabric, placement, size_bytes, jobs if running is None else running)
        if running is not None:
            return [runs.outcome("alone")]
        runs.outcome("first run")  # joins the jobs, which takes time before they start
        began_ps = fabric.hosts.now_ps()
        undisturbed = runs.outcome("undisturbed")
        lead_ps = fabric.phases[-1].start_ps - began_ps
        (dead, _), *_ = Counter(undisturbed.trees).most_common(1)
        after_ps = lead_ps + int(min(each.time_us for each in undisturbed.jobs) / 2 * 1e6)
        for leaf in topology.switch(dead).fabric_ports:
            fabric.schedule_link(leaf.peer.node, dead, "down", after_ps)
        return [undisturbed, runs.outcome("spine dies", dead)]


class _Runs:
    """Runs of the same jobs on a fabric, one after the other."""

    def __init__(self, fabric: Fabric, placement: str, size_bytes: int, jobs: int) -> None:
        call = CollectiveCall("allreduce", size_bytes, "in-network", DataType.INT32, Operation.SUM)
        job = collectives_job("all-reduce", [call], LEAVES)
        per_leaf = fabric.topology.rank_count // LEAVES
        self._fabric = fabric
        self._placement = placement
        self._size_bytes = size_bytes
        self._placed = [
            PlacedJob(job, tuple(leaf * per_leaf + number for leaf in range(LEAVES)), data="random")
            for number in range(jobs)
        ]

    def outcome(self, case: str, failed: str = "") -> Outcome:
        """Run the jobs, which begin at the same moment."""
        sent_before, roots_before = self._sent_up(), self._roots()
        runs = self._fabric.run_jobs(self._placed, TIMEOUT_S)
        duration_ps = max(run.duration_ps for run in runs)
        sent, roots = self._sent_up(), self._roots()
        events = self._fabric.lab.link_events.results if failed else []
        samples = self._fabric.observations().tables["queues"]
        jobs = [
            self._job(run, root, bool(failed) and root != roots_before[number], _Sampled.of(samples, number, run))
            for number, (run, root) in enumerate(zip(runs, roots, strict=True))
        ]
        return Outcome(
            case,
            self._placement,
            tuple(jobs),
            dict(Counter(sorted(roots))),
            max((sent[port] - sent_before[port]) * 8e12 / duration_ps / rate for port, rate in self._uplinks()),
            failed,
            (events[0].happened_ps - runs[0].started_ps) / 1e6 if events else 0.0,
            max((each.repeated_messages for each in events), default=0),
        )

    def _roots(self) -> list[str]:
        jobs = self._fabric.lab.controller.jobs
        return [job.trees[0].tree.root.switch for job in jobs]

    def _job(self, run: JobRun, root: str, moved: bool, sampled: _Sampled) -> JobOutcome:
        assert run.verdict is not None
        return JobOutcome(
            root,
            run.duration_ps / 1e6,
            self._size_bytes * 8e3 / run.duration_ps,
            sampled.longest_pause_ps / 1e6,
            run.verdict.wrong == 0 and run.verdict.identical is True,
            moved,
            tuple(sampled.rates()),
        )

    def _uplinks(self) -> list[tuple[str, float]]:
        return [
            (f"{switch.name}:{port.number}", port.link.rate_bps)
            for switch in self._fabric.topology.switches
            if switch.tier == 1
            for port in switch.fabric_ports
        ]

    def _sent_up(self) -> dict[str, int]:
        fabric = self._fabric
        table = ports_table(fabric.topology, fabric.lab.switch_stats(), fabric.hosts.stats())
        return dict(zip(table["port"].texts(), table["transmitted_bytes"].tolist(), strict=True))


@dataclass(frozen=True)
class _Sampled:
    """Bytes that a port had sent at times of a run, which has a sample wherever they differ from the one before."""

    times_ps: NDArray[np.int64]
    sent_bytes: NDArray[np.int64]

    @classmethod
    def of(cls, table: ObservedTable, number: int, run: JobRun) -> _Sampled:
        """Return what the port of a job's first worker sent during a run."""
        times, sent = np.asarray(table["time_ps"]), np.asarray(table["transmitted_bytes"])
        own = np.asarray(table["port"].texts()) == f"p0l0:{number + 1}"
        own &= (times >= run.started_ps) & (times <= run.started_ps + run.duration_ps)
        return cls(times[own] - run.started_ps, sent[own])

    @property
    def longest_pause_ps(self) -> int:
        """The longest time in which nothing was sent."""
        return int(np.diff(self.times_ps).max(initial=0))

    def rates(self) -> list[tuple[float, float]]:
        """Return the rate (Gb/s) of each `RATE_PS`, with the middle of it (µs)."""
        ends = np.arange(0, self.times_ps[-1] + RATE_PS, RATE_PS)
        latest = np.searchsorted(self.times_ps, ends, side="right") - 1
        rates = np.diff(self.sent_bytes[np.maximum(latest, 0)]) * 8e3 / RATE_PS
        return [((end - RATE_PS / 2) / 1e6, rate) for end, rate in zip(ends[1:].tolist(), rates.tolist(), strict=True)]


TOP_GBPS = 600
"""Of the axes, which leaves room for names above the rate of a host."""
PARTS_OF_PICTURE = ("moved", "joined by others", "apart")


def picture(outcomes: Sequence[Outcome]) -> str:
    """Draw the jobs' goodputs by placement, and for each placement what jobs receive while a spine dies."""
    undisturbed = [each for each in outcomes if each.case == "undisturbed"]
    goodputs = {
        each.placement: list(enumerate(sorted((job.goodput_gbps for job in each.jobs), reverse=True), start=1))
        for each in undisturbed
    }
    most = max(len(each.jobs) for each in undisturbed)
    panels = [Panel("Goodput of jobs", "job, the fastest first", "Gb/s", most, TOP_GBPS, goodputs)]
    for each in outcomes:
        if each.case == "spine dies":
            title = f"{each.failed} dies, placement: {each.placement}"
            curves = _curves_of(each)
            end = max(time for points in curves.values() for time, _ in points)
            panels.append(Panel(title, "µs", "to the first worker, Gb/s", ceil(end / 250) * 250, TOP_GBPS, curves))
    return svg_of(panels)


def _curves_of(outcome: Outcome) -> dict[str, list[tuple[float, float]]]:
    """Return the rates of a job whose spine died, of one that got company by that, and of one that did not."""
    moved = [job for job in outcome.jobs if job.moved]
    company = {job.root for job in moved}
    kinds = (
        moved,
        [job for job in outcome.jobs if not job.moved and job.root in company],
        [job for job in outcome.jobs if not job.moved and job.root not in company],
    )
    return {name: list(jobs[0].rates) for name, jobs in zip(PARTS_OF_PICTURE, kinds, strict=True) if jobs}


def show(outcomes: Sequence[Outcome]) -> None:
    """Print a table of the outcomes."""
    table = Table(title="Jobs that reduce over shared spines", title_justify="left")
    for name in ("case", "placement", "trees"):
        table.add_column(name)
    for name in (
        "fullest uplink",
        "time (µs)",
        "Jain",
        "sum (Gb/s)",
        "moved",
        "pause (µs)",
        "sent again",
        "exact",
    ):
        table.add_column(name, justify="right")
    for each in outcomes:
        table.add_row(
            each.case,
            each.placement,
            " ".join(map(str, each.trees.values())),
            f"{each.fullest_uplink:.2f}",
            span(job.time_us for job in each.jobs),
            f"{each.fairness:.3f}",
            f"{each.sum_gbps:,.0f}",
            span(job.time_us for job in each.jobs if job.moved),
            span(job.pause_us for job in each.jobs if job.moved),
            f"{each.sent_again:,}",
            "yes" if all(job.exact for job in each.jobs) else "NO",
        )
    Console(width=150).print(table)


def span(values: Iterable[float]) -> str:
    """Return the least and the largest of values, once if they look the same; a dash for none."""
    sizes = sorted(values)
    if not sizes:
        return "–"
    ends = dict.fromkeys((f"{sizes[0]:,.0f}", f"{sizes[-1]:,.0f}"))
    return " to ".join(ends)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, choices=range(1, DEFAULT_TREE_CHILDREN + 1), default=JOBS, metavar="N")
    parser.add_argument("--size", type=int, default=SIZE_BYTES, help="bytes of each job")
    parser.add_argument("--placements", nargs="+", choices=list(PLACEMENTS), default=list(PLACEMENTS))
    parser.add_argument("--default-ecn", action="store_true", help="mark as switches do by default, for DCQCN")
    parser.add_argument("--picture", type=Path, help="draw what was run into an SVG file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    ecn = EcnSection() if options.default_ecn else ECN
    outcomes = outcomes_of(options.placements[0], options.jobs, options.size, running=1, ecn=ecn)
    for placement in options.placements:
        outcomes += outcomes_of(placement, options.jobs, options.size, ecn=ecn)
        print(f"{placement}: done", file=sys.stderr, flush=True)
    if options.picture is not None:
        options.picture.write_text(picture(outcomes))
    if options.json:
        print(json.dumps([asdict(each) for each in outcomes], indent=1))
        return
    show(outcomes)


if __name__ == "__main__":
    main()
