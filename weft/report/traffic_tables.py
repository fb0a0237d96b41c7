"""Tables of a page on the traffic: what ran when, and its results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.report.run_directory import RunDirectory, integers_of
from weft.results.collectives import CollectiveResult
from weft.results.flows import MOST_SHOWN, records_file
from weft.results.report_table import MOST_ROWS, Cell, ReportTable, shown_of
from weft.results.workloads import PERCENTILES, WorkloadResult
from weft.topologies.describe import format_time


def _us(time_ps: int) -> float:
    return round(time_ps / 1e6, 3)


def phases(run: RunDirectory) -> ReportTable:
    """Parts of the traffic, numbered as the charts have them."""
    rows: list[list[Cell]] = [
        [number, phase.name, _us(phase.start_ps), _us(phase.end_ps), _us(phase.end_ps - phase.start_ps)]
        for number, phase in enumerate(run.phases[:MOST_ROWS], 1)
    ]
    columns = ["phase", "traffic", "from (µs)", "to (µs)", "took (µs)"]
    return ReportTable("Phases", columns, rows, shown_of(len(rows), len(run.phases), "the first"))


def collectives(run: RunDirectory) -> ReportTable:
    """Figures of nccl-tests; of repetitions the mean time, and the least and the largest."""
    results = run.results.collectives
    repeated = any(len(each.times_ps) > 1 for each in results)
    rows: list[list[Cell]] = [
        [
            f"{each.collective}, {each.algorithm}",
            each.size_bytes,
            each.dtype,
            each.operation,
            _us(each.time_ps),
            *((_us(each.least_time_ps), _us(each.largest_time_ps), len(each.times_ps)) if repeated else ()),
            round(each.algorithm_bandwidth / 1e9, 3),
            round(each.busbw_bytes_per_s / 1e9, 3),
            _wrong(each),
            each.retransmissions,
            each.cnps,
        ]
        for each in results
    ]
    times = ("mean (µs)", "least (µs)", "largest (µs)", "repetitions") if repeated else ("time (µs)",)
    columns = [
        "collective", "size (B)", "type", "operation", *times, "algbw (GB/s)", "busbw (GB/s)", "wrong",
        "retransmitted packets", "CNPs",
    ]  # fmt: skip
    warm = max((each.warmup for each in results), default=0)
    return ReportTable("Collectives", columns, rows, f"after up to {warm} runs to warm up" if warm else "")


def _wrong(result: CollectiveResult) -> Cell:
    if not result.verified:
        return "lengths only"
    return result.wrong if result.identical else f"{result.wrong}, ranks differ"


def training_steps(run: RunDirectory) -> ReportTable:
    """Steps of data-parallel training."""
    rows: list[list[Cell]] = [
        [
            each.algorithm,
            each.layers,
            each.gradient_bytes,
            each.dtype,
            each.buckets,
            _us(each.compute_ps),
            _us(each.step_ps),
            _us(each.exposed_ps),
            f"{100 * each.exposed_ps / each.step_ps:.1f} %" if each.step_ps else "0.0 %",
            each.wrong if each.verified else "lengths only",
            each.retransmissions,
        ]
        for each in run.results.training_steps
    ]
    columns = [
        "algorithm", "layers", "gradients (B)", "type", "buckets", "compute (µs)", "step (µs)", "exposed (µs)",
        "exposed", "wrong", "retransmitted packets",
    ]  # fmt: skip
    note = "exposed: the part of the step in which ranks only wait for gradients"
    return ReportTable("Training steps", columns, rows, note)


def workloads(run: RunDirectory) -> Iterator[ReportTable]:
    """Completion times and slowdowns of each workload, by size of flow."""
    names = [f"p{percentile}" for percentile in PERCENTILES]
    columns = [
        "flows up to (B)", "flows", *(f"completion {name} (µs)" for name in names),
        *(f"slowdown {name}" for name in names),
    ]  # fmt: skip
    for each in run.results.workloads:
        rows: list[list[Cell]] = [
            [
                size.upper_bytes,
                size.flows,
                *(_us(time_ps) for time_ps in size.completion_ps),
                *(round(value, 2) for value in size.slowdown),
            ]
            for size in each.bins
        ]
        rows.append(["all", each.flows, *("" for _ in names), *(round(value, 2) for value in each.slowdown)])
        yield ReportTable(f"Workload: {workload_name(each)}", columns, rows, _of_workload(each))


def workload_name(workload: WorkloadResult) -> str:
    """Return a workload's name for headings."""
    return f"{workload.flow_sizes} at a load of {workload.load:g}"


def _of_workload(each: WorkloadResult) -> str:
    return (
        f"{each.flows} flows started within {format_time(each.duration_ps)}, {each.bytes_delivered} B, all done after "
        f"{format_time(each.time_ps)}; {each.retransmissions} packets retransmitted, {each.cnps} CNPs. Slowdown is the "
        "completion time over that of a lone flow"
    )


def flows_by_pattern(run: RunDirectory) -> ReportTable:
    """Patterns of flows as a whole, and how long single flows took."""
    rows: list[list[Cell]] = [
        [
            each.pattern,
            each.flows,
            each.bytes_delivered,
            _us(each.time_ps),
            _us(each.least_completion_ps),
            _us(each.mean_completion_ps),
            _us(each.largest_completion_ps),
            each.retransmissions,
            each.cnps,
        ]
        for each in run.results.flows
    ]
    columns = [
        "pattern", "flows", "delivered (B)", "time (µs)", "least flow (µs)", "mean flow (µs)", "largest flow (µs)",
        "retransmitted packets", "CNPs",
    ]  # fmt: skip
    return ReportTable("Patterns", columns, rows)


def flows_of_patterns(run: RunDirectory) -> Iterator[tuple[int, ReportTable]]:
    """The slowest flows of each pattern, by the pattern's place."""
    hosts = run.fabric.hosts
    columns = ["flow", "plane", "size (B)", "start (µs)", "completion (µs)", "retransmitted packets"]
    for number, table in run.pattern_flows.items():
        values = {column: integers_of(table, column).tolist() for column in table}
        slowest = np.argsort(-integers_of(table, "completion_ps"), kind="stable")[:MOST_SHOWN].tolist()
        rows: list[list[Cell]] = [
            [
                f"{hosts[values['source'][row]].name} → {hosts[values['destination'][row]].name}",
                values["plane"][row],
                values["size_bytes"][row],
                _us(values["start_ps"][row]),
                _us(values["completion_ps"][row]),
                values["retransmitted_packets"][row],
            ]
            for row in slowest
        ]
        title = f"Flows: {run.results.flows[number].pattern}"
        note = shown_of(len(rows), len(values["flow"]), f"the slowest; {records_file(number)} has all")
        yield number, ReportTable(title, columns, rows, note)


def slowest_messages(run: RunDirectory) -> ReportTable | None:
    """Messages of the largest slowdown."""
    if not run.rows("flows"):
        return None
    starts, ends = run.integers("flows", "start_ps"), run.integers("flows", "end_ps")
    took = ends - starts
    slowdown = took / np.maximum(1, run.integers("flows", "ideal_ps"))
    worst = np.argsort(-slowdown, kind="stable")[:20].tolist()
    sources, destinations, statuses = (
        run.texts("flows", column) for column in ("source", "destination", "status")
    )
    planes, sizes, repeated = (
        run.integers("flows", column) for column in ("plane", "size_bytes", "retransmitted_packets")
    )
    rows: list[list[Cell]] = [
        [
            f"{sources[row]} → {destinations[row]}",
            int(planes[row]),
            int(sizes[row]),
            format_time(int(starts[row])),
            format_time(int(took[row])),
            round(float(slowdown[row]), 2),
            int(repeated[row]),
            str(statuses[row]),
        ]
        for row in worst
    ]
    columns = [
        "message", "plane", "size (B)", "posted at", "took", "slowdown", "retransmitted packets", "status",
    ]  # fmt: skip
    note = f"the {len(rows)} of the largest slowdown, of {len(took)}"
    return ReportTable("Slowest messages", columns, rows, note)
