"""Results of a job from a trace: its duration, and the parts of ranks' time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import Unit, counted, format_time, time_unit
from weft.recording import tables
from weft.results.clearances import ClearedResult, ClearToSendResult, clearance_columns, print_clearances
from weft.results.columns import Column, ResultTable
from weft.results.critical_paths import CriticalPathResult, critical_path_tables, print_critical_path
from weft.results.figure_tables import Layout
from weft.results.kinds import ResultKind, lengths_and_sums
from weft.results.operation_files import OperationFile, timelines
from weft.results.report_parts import Axis, BarFigure, ReportPart, shown_of
from weft.results.step_parts import StepParts
from weft.topologies import FabricSpec
from weft.traffic.jobs.breakdown import Breakdown

_MOST_BARS = 64


@dataclass(frozen=True)
class JobTraceResult(ClearedResult):
    """A job from a trace, from its start to the end of its last operation.

    Each rank's time is divided into computing, exposed communication, bubbles and stalls, which add up to the job's
    ([definitions](traffic.md#trace)). `records` has a row per operation; it is written to a separate table, not to
    the results file.
    """

    name: str
    """Name of the trace."""
    operations: int
    """Operations of all ranks."""
    sent_bytes: int
    """Bytes of all messages, without messages of collectives."""
    time_ps: int
    """Duration of the job."""
    compute_ps: list[int]
    """Computing time of each rank."""
    exposed_ps: list[int]
    """Time of each rank for communication that no computation hid."""
    bubble_ps: list[int]
    """Time of each rank spent waiting for messages that had not been sent, and for the end."""
    stall_ps: list[int]
    """Time of each rank spent waiting for ranks that had not begun a collective, for timers and streams."""
    exposed_by_category_ps: dict[str, int]
    """Exposed communication by what operations are for, on average over the ranks; a trace may not say it."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    critical_path: CriticalPathResult
    """Parts of the duration."""
    records: tables.Table = field(default_factory=dict, compare=False, repr=False)

    @property
    def cleared_ps(self) -> int:
        """`time_ps`."""
        return self.time_ps

    @property
    def step_parts(self) -> StepParts:
        """Return the means of the ranks' parts."""
        return StepParts.of_ranks(*self.parts_ps.values())

    @property
    def parts_ps(self) -> dict[str, list[int]]:
        """Parts of each rank's time, by their names for people."""
        return {
            "compute": self.compute_ps,
            "exposed": self.exposed_ps,
            "bubble": self.bubble_ps,
            "stall": self.stall_ps,
        }


def job_trace_result(
    name: str,
    operations: int,
    sent_bytes: int,
    time_ps: int,
    found: Sequence[Breakdown],
    retransmissions: int,
    path: CriticalPathResult,
    records: tables.Table,
    clear_to_send: ClearToSendResult | None = None,
) -> JobTraceResult:
    """Return the result of a job, given what each rank's time went to."""
    categories: Counter[str] = Counter()
    for each in found:
        categories.update(each.exposed_ps)
    return JobTraceResult(
        name=name,
        operations=operations,
        sent_bytes=sent_bytes,
        time_ps=time_ps,
        compute_ps=[each.compute_ps.total() for each in found],
        exposed_ps=[each.exposed_ps.total() for each in found],
        bubble_ps=[each.bubble_ps for each in found],
        stall_ps=[each.stall_ps for each in found],
        exposed_by_category_ps={
            category: round(total / len(found)) for category, total in sorted(categories.items()) if category
        },
        retransmissions=retransmissions,
        critical_path=path,
        records=records,
        clear_to_send=clear_to_send,
    )


_Part = tuple[str, list[int]]


def _of_ranks(unit: Unit) -> ResultTable[_Part]:
    """Return the terminal's table of what ranks' time went to."""

    def figure(title: str, of: Callable[[list[int]], float]) -> Column[_Part]:
        return Column(title, lambda row: unit.of(of(row[1])), unit=unit.name, form="{:,.3f}".format)

    return ResultTable(
        "",
        (
            Column("of a rank", lambda row: row[0], is_name=True),
            figure("mean", lambda values: sum(values) / len(values)),
            figure("least", min),
            figure("largest", max),
        ),
        layout=Layout(is_narrow=True),
    )


def _jobs(unit: Unit) -> ResultTable[JobTraceResult]:
    """Return a page's table of jobs."""
    return ResultTable(
        "Jobs from traces",
        (
            Column("trace", "name"),
            Column("ranks", lambda each: len(each.compute_ps)),
            Column("operations", "operations"),
            Column("time", lambda each: unit.of(each.time_ps), unit=unit.name, digits=3),
            Column("messages", "sent_bytes", unit="B"),
            Column("retransmitted packets", "retransmissions"),
            *clearance_columns(JobTraceResult),
        ),
    )


def print_job_traces(console: Console, results: Sequence[JobTraceResult]) -> None:
    """Print what each job took, and where its ranks' time went: mean, least and largest."""
    for result in results:
        console.print(
            f"\n[bold]{escape(result.name)}[/bold]: {counted(result.operations, 'operation')} of "
            f"{counted(len(result.compute_ps), 'rank')} in {format_time(result.time_ps)} of emulated time, "
            f"{counted(result.retransmissions, 'packet')} retransmitted"
        )
        _of_ranks(time_unit([result.time_ps])).print(console, list(result.parts_ps.items()))
        print_clearances(console, result)
        print_critical_path(console, result.critical_path)


def report_job_traces(results: Sequence[JobTraceResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of each job's ranks, and a table with a row for each job."""
    for number, result in enumerate(results, 1):
        ranks = len(result.compute_ps)
        shown = min(ranks, _MOST_BARS)
        unit = time_unit([result.time_ps])
        yield BarFigure(
            f"Ranks of {number} {result.name}",
            Axis(f"time ({unit.name})", unit.name),
            rows=[f"rank {rank}" for rank in range(shown)],
            parts={name: [unit.of(each) for each in values[:shown]] for name, values in result.parts_ps.items()},
            text="Parts of each rank's time.",
            note=shown_of(shown, ranks, "the first ranks"),
        )
        yield from timelines(f"{number} {result.name}", result.records)
        yield from critical_path_tables(f"{number} {result.name}", result.critical_path)
    yield _jobs(time_unit(each.time_ps for each in results)).part(results)


def _problems(result: JobTraceResult) -> Iterator[tuple[str, str]]:
    if not result.compute_ps:
        yield "compute_ps", "has no values; a job has a rank or more"
    parts = {f"{name}_ps": values for name, values in result.parts_ps.items()}
    yield from lengths_and_sums("", parts, len(result.compute_ps), "time_ps", result.time_ps)


JOB_TRACES = ResultKind(
    key="job_traces",
    meaning="One for each job from a trace.",
    model=JobTraceResult,
    show=print_job_traces,
    order=6,
    report=report_job_traces,
    flow_file=OperationFile("trace"),
    problems=_problems,
    name="name",
    labels=("name",),
)
