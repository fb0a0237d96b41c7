"""Results of a workload of flows: completion times and slowdowns by size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_US
from weft.recording.ideal_times import IdealTimes
from weft.recording.schema import ColumnSchema, TableSchema
from weft.results.columns import Column, ResultTable
from weft.results.figure_tables import Layout
from weft.results.flow_tables import FLOW_COLUMNS, FlowFile, FlowTable, flow_table
from weft.results.kinds import ItemResult, ResultKind
from weft.results.report_parts import Axis, Curve, CurveFigure, ReportPart, ReportTable
from weft.topologies import FabricSpec
from weft.traffic.answers import EndedFlows
from weft.traffic.flow_sizes import FlowSizes
from weft.traffic.patterns import Flow

PERCENTILES = (50, 95, 99)
_BINS = 10
_MOST_DRAWN = 5000
"""Flows of a figure; of more, the slowest."""
_SIZE = Axis("size of the flow (kB)", "kB", "log")


@dataclass(frozen=True)
class SizeBin:
    """Flows above the bin before and of at most `upper_bytes`: their times and their slowdowns.

    A slowdown is a completion time over the ideal one (`weft.recording.ideal_times`).
    """

    upper_bytes: int
    """The largest size in the bin; the smallest is above the previous bin's largest."""
    flows: int
    """How many there are."""
    completion_ps: tuple[int, ...]
    """Completion times at 50, 95 and 99 %."""
    slowdown: tuple[float, ...]
    """Completion times over the ideal ones, at the same percentiles."""


@dataclass(frozen=True)
class WorkloadResult(ItemResult):
    """A workload, and its flows' completion times, from a flow's start to its last acknowledgement.

    `records` has a row per flow; it is written to a separate table, not to the results file.
    """

    flow_sizes: str
    """The distribution of sizes."""
    load: float
    """Offered, as a share of the rate of all ports of a host."""
    duration_ps: int
    """The time during which flows started."""
    flows: int
    """How many."""
    bytes_delivered: int
    """Bytes of all flows."""
    time_ps: int
    """From the first flow's start to the last one's end."""
    retransmissions: int
    """Packets sent again."""
    slowdown: tuple[float, ...]
    """Completion times over the ideal ones, at 50, 95 and 99 % of all flows."""
    bins: tuple[SizeBin, ...]
    """By size of flow."""
    cnps: int = 0
    """Congestion notifications received."""
    records: FlowTable = field(default_factory=dict, compare=False)


def workload_result(
    sizes: FlowSizes,
    load: float,
    duration_ps: int,
    flows: Sequence[Flow],
    records: EndedFlows,
    ideal: IdealTimes,
    time_ps: int,
    cnps: int,
) -> WorkloadResult:
    """Return what a workload found; `records` are the columns of `PreparedRuns.flow_records`, one row per flow."""
    table = flow_table(flows, records)
    size_bytes, completion_ps = table["size_bytes"], table["completion_ps"]
    ideal_ps = ideal.of(*(table[key] for key in ("source", "destination", "plane", "size_bytes")))
    slowdown = completion_ps / ideal_ps
    retransmitted = table.pop("retransmitted_packets")
    table |= {"ideal_ps": ideal_ps, "slowdown": slowdown, "retransmitted_packets": retransmitted}
    return WorkloadResult(
        flow_sizes=sizes.name,
        load=load,
        duration_ps=duration_ps,
        flows=len(flows),
        bytes_delivered=int(size_bytes.sum()),
        time_ps=time_ps,
        retransmissions=int(retransmitted.sum()),
        cnps=cnps,
        slowdown=_percentiles(slowdown),
        bins=tuple(_bins(sizes, size_bytes, completion_ps, slowdown)),
        records=table,
    )


def _at(name: str, place: int) -> Callable[[SizeBin], float | None]:
    def value(row: SizeBin) -> float | None:
        found: Sequence[float] = getattr(row, name)
        return found[place] if found else None

    return value


_BY_SIZE = ResultTable[SizeBin](
    "Workload",
    (
        Column(
            "up to\n",
            lambda row: row.upper_bytes if row.completion_ps else "all",
            unit="B",
            page={"title": "flows up to"},
        ),
        Column("flows", "flows"),
        *(
            Column[SizeBin](
                f"FCT (µs)\n{percentile}%",
                _at("completion_ps", place),
                scale=PS_PER_US,
                digits=1,
                page={"title": f"completion p{percentile} (µs)", "digits": 3},
            )
            for place, percentile in enumerate(PERCENTILES)
        ),
        *(
            Column[SizeBin](
                f"slowdown\n{percentile}%",
                _at("slowdown", place),
                digits=2,
                page={"title": f"slowdown p{percentile}"},
            )
            for place, percentile in enumerate(PERCENTILES)
        ),
    ),
    layout=Layout(is_narrow=True, headings="bottom"),
)


def _rows(result: WorkloadResult) -> list[SizeBin]:
    return [*result.bins, SizeBin(0, result.flows, (), result.slowdown)]


def print_workload(console: Console, workload: WorkloadResult) -> None:
    """Print completion times and slowdowns by size."""
    console.print(
        f"\n[bold]{escape(workload.flow_sizes)}[/bold] at {workload.load:.0%} of the hosts' rate for "
        f"{format_time(workload.duration_ps)}: {counted(workload.flows, 'flow')}, {workload.bytes_delivered} B, all "
        f"done after {format_time(workload.time_ps)}, {counted(workload.retransmissions, 'packet')} retransmitted, "
        f"{counted(workload.cnps, 'CNP')}"
    )
    _BY_SIZE.print(console, _rows(workload))


def _bins(
    sizes: FlowSizes,
    size_bytes: npt.NDArray[np.int64],
    completion_ps: npt.NDArray[np.int64],
    slowdown: npt.NDArray[np.float64],
) -> list[SizeBin]:
    """Cut at the distribution's deciles, as HPCC's evaluation does (SIGCOMM 2019, figure 11); none is empty."""
    uppers = np.unique(sizes.quantile_bytes(np.arange(1, _BINS + 1) / _BINS))
    places = np.searchsorted(uppers, size_bytes)
    bins = []
    for number, upper_bytes in enumerate(uppers.tolist()):
        inside = places == number
        if inside.any():
            times = tuple(round(value) for value in _percentiles(completion_ps[inside]))
            bins.append(SizeBin(upper_bytes, int(np.count_nonzero(inside)), times, _percentiles(slowdown[inside])))
    return bins


def _percentiles(values: npt.NDArray[Any]) -> tuple[float, ...]:
    return tuple(float(value) for value in np.percentile(values, PERCENTILES))


def print_workloads(console: Console, results: Sequence[WorkloadResult]) -> None:
    """Print every workload."""
    for result in results:
        print_workload(console, result)


def report_workloads(results: Sequence[WorkloadResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Slowdowns and completion times of each workload, by size of flow."""
    for each in results:
        if each.bins:
            yield _slowdowns(each)
            yield _completion_times(each)
        yield _table_by_size(each)


def _title(what: str, result: WorkloadResult) -> str:
    return f"{what}: {result.flow_sizes} at a load of {result.load:g}"


def _curves_by_size(result: WorkloadResult, values: Sequence[Sequence[float]]) -> list[Curve]:
    sizes = [each.upper_bytes / 1e3 for each in result.bins]
    return [
        Curve(f"p{percentile}", sizes, [of_bin[place] for of_bin in values])
        for place, percentile in enumerate(PERCENTILES)
    ]


def _slowdowns(result: WorkloadResult) -> CurveFigure:
    points, note = None, ""
    if result.records:
        slowdown = result.records["completion_ps"] / np.maximum(1, result.records["ideal_ps"])
        # The worst flows are always drawn: they are the purpose of the figure.
        shown = np.sort(np.argsort(-slowdown, kind="stable")[:_MOST_DRAWN])
        sizes = result.records["size_bytes"][shown] / 1e3
        points = Curve("flows", sizes.tolist(), np.round(slowdown[shown], 4).tolist())
        if len(shown) < len(slowdown):
            note = f"{len(shown)} of {len(slowdown)} flows are drawn: the largest"
    return CurveFigure(
        _title("Slowdown by size", result),
        _SIZE,
        Axis("slowdown", scale="log"),
        _curves_by_size(result, [[round(value, 4) for value in each.slowdown] for each in result.bins]),
        points,
        "A point is a flow: its completion time divided by a lone flow's. Lines: percentiles of flows up to a size.",
        note,
    )


def _completion_times(result: WorkloadResult) -> CurveFigure:
    return CurveFigure(
        _title("Completion times by size", result),
        _SIZE,
        Axis("completion time (µs)", "µs", "log"),
        _curves_by_size(result, [[time_ps / PS_PER_US for time_ps in each.completion_ps] for each in result.bins]),
        text="Percentiles of the flows up to a size.",
    )


def _table_by_size(result: WorkloadResult) -> ReportTable:
    note = (
        f"{counted(result.flows, 'flow')} started within {format_time(result.duration_ps)}, "
        f"{result.bytes_delivered} B, all done after {format_time(result.time_ps)}; "
        f"{counted(result.retransmissions, 'packet')} retransmitted, {counted(result.cnps, 'CNP')}. "
        "Slowdown is the completion time over that of a lone flow"
    )
    return _BY_SIZE.part(_rows(result), note, _title(_BY_SIZE.title, result))


def _problems(result: WorkloadResult) -> Iterator[tuple[str, str]]:
    of_bins = [
        (f"bins[{number}].{name}", values)
        for number, each in enumerate(result.bins)
        for name, values in (("completion_ps", each.completion_ps), ("slowdown", each.slowdown))
    ]
    for key, values in [("slowdown", result.slowdown), *of_bins]:
        if len(values) != len(PERCENTILES):
            yield key, f"has {len(values)} values; there are {len(PERCENTILES)} percentiles"


def _flattened(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the slowdowns of a result's plain data, which are a list."""
    return {f"slowdown_p{percentile}": value for percentile, value in zip(PERCENTILES, result["slowdown"], strict=True)}


WORKLOADS = ResultKind(
    key="workloads",
    meaning="One for each workload; its place N in the list names `workload-N-flows.csv`.",
    is_always_written=True,
    model=WorkloadResult,
    show=print_workloads,
    order=3,
    report=report_workloads,
    flow_file=FlowFile("workload", TableSchema((*FLOW_COLUMNS, ColumnSchema("ideal_ps", smallest=0)))),
    problems=_problems,
    name="flow_sizes",
    labels=("load", "duration_ps"),
    columns=tuple(
        Column(f"slowdown p{percentile}", f"slowdown_p{percentile}", digits=2, sweep={}) for percentile in (50, 99)
    ),
    flattened=_flattened,
)
