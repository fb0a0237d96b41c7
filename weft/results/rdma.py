"""What hosts' programs reported, and what their requests took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rich.console import Console

from weft.quantities.readable import counted, format_time
from weft.results.figure_tables import print_figures
from weft.results.kinds import ResultKind
from weft.results.latencies import COLUMNS, Latencies
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_US = 1e6
_SHOWN = ("least", "mean", "50 %", "99 %", "largest")
_MOST_POINTS = 20


@dataclass(frozen=True)
class ProgramResult:
    """A host's program, from its start to its return."""

    host: str
    """Where it ran."""
    program: str
    """Its class or function, with its file."""
    time_ps: int
    """How long it ran."""
    values: dict[str, float]
    """Numbers that it reported."""
    texts: dict[str, str]
    """Texts that it reported."""
    series: dict[str, list[list[float]]]
    """Points that it recorded, an x and a y each, by series."""


@dataclass(frozen=True)
class OperationResult:
    """All programs' requests of an opcode."""

    opcode: str
    """By its name in libibverbs: of requests IBV_WR_…, of receives IBV_WC_…."""
    operations: int
    """That succeeded."""
    failed: dict[str, int]
    """How many ended otherwise, by their status."""
    bytes: int
    """Of those that succeeded."""
    latency_ps: Latencies | None
    """Of those that succeeded, from when they were posted until they had completed; null of receives."""


@dataclass(frozen=True)
class RdmaResult:
    """Programs of hosts, which began at the same time, until the last one returned."""

    derived: ClassVar[Mapping[str, str]] = {}

    time_ps: int
    """How long it took."""
    programs: list[ProgramResult]
    """By host, in the order of the scenario."""
    operations: list[OperationResult]
    """Of each opcode that there was."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Return True: what is right is the programs' to say, which raise if it is not."""
        return True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def _microseconds(latencies: Latencies | None) -> list[float]:
    return [] if latencies is None else [round(each / _PS_PER_US, 3) for each in latencies.in_columns()]


def _whole(value: float | str) -> Cell:
    """Return a whole number as one: results that were read back have all as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown_latencies(latencies: Latencies | None) -> list[str]:
    if latencies is None:
        return [""] * len(_SHOWN)
    by_column = dict(zip(COLUMNS, latencies.in_columns(), strict=True))
    return [f"{by_column[name] / _PS_PER_US:,.2f}" for name in _SHOWN]


def _failures(result: OperationResult) -> str:
    return ", ".join(f"{count} {status.removeprefix('IBV_WC_')}" for status, count in result.failed.items())


def _number(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"


def print_rdma(console: Console, results: Sequence[RdmaResult]) -> None:
    """Print what programs reported, and what requests took."""
    for result in results:
        print_figures(
            console,
            f"[bold]rdma: {counted(len(result.programs), 'program')} in {format_time(result.time_ps)}[/bold], "
            "latencies in µs (time is emulated)",
            ("requests", "count", "bytes", *_SHOWN, "failed"),
            (
                (
                    each.opcode.removeprefix("IBV_WR_").removeprefix("IBV_WC_"),
                    f"{each.operations:,}",
                    f"{each.bytes:,}",
                    *_shown_latencies(each.latency_ps),
                    _failures(each),
                )
                for each in result.operations
            ),
            ("requests", "failed"),
            is_narrow=True,
        )
        print_figures(
            console,
            "[bold]what programs report[/bold]",
            ("host", "program", "name", "value"),
            (
                (each.host, each.program, name, value if isinstance(value, str) else _number(value))
                for each in result.programs
                for name, value in (each.values | each.texts).items()
            ),
            ("host", "program", "name"),
        )
        for each in result.programs:
            for name, points in each.series.items():
                print_figures(
                    console,
                    f"[bold]{each.host}:[/bold] {_escaped(name)}",
                    ("x", "y"),
                    ((_number(x), _number(y)) for x, y in points[:_MOST_POINTS]),
                )


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


def report_rdma(results: Sequence[RdmaResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return tables of requests and of reported values, and a figure of each series."""
    requests: list[list[Cell]] = []
    reported: list[list[Cell]] = []
    curves: dict[str, list[Curve]] = {}
    for number, result in enumerate(results, 1):
        for each in result.operations:
            latencies: list[Cell] = [*_microseconds(each.latency_ps)] or [""] * len(COLUMNS)
            requests.append([number, each.opcode, each.operations, each.bytes, *latencies, _failures(each)])
        for program in result.programs:
            for name, value in (program.values | program.texts).items():
                reported.append([number, program.host, program.program, name, _whole(value)])
            for name, points in program.series.items():
                label = program.host if len(results) == 1 else f"{number} {program.host}"
                x, y = zip(*points, strict=True)
                curves.setdefault(name, []).append(Curve(label, x, y))
    columns = ["run", "opcode", "count", "bytes", *(f"{each} (µs)" for each in COLUMNS), "failed"]
    yield ReportTable("RDMA requests", columns, requests, "percentiles of requests' latencies")
    yield ReportTable("What programs report", ["run", "host", "program", "name", "value"], reported)
    for name, found in curves.items():
        yield CurveFigure(name, Axis(""), Axis(""), found)


def _problems(result: RdmaResult) -> Iterator[tuple[str, str]]:
    for index, operation in enumerate(result.operations):
        if operation.latency_ps is not None:
            for key, wrong in operation.latency_ps.problems():
                yield f"operations[{index}].latency_ps.{key}", wrong
    for index, program in enumerate(result.programs):
        for name, points in program.series.items():
            if not points or any(len(point) != 2 for point in points):
                yield f"programs[{index}].series.{name}", "has points that are not an x and a y"


def _measured(plain: Any) -> dict[str, Any]:
    """Return the numbers that programs reported, as columns of a sweep's table."""
    return {
        f"{program['host']} {name}": value
        for program in plain["programs"]
        for name, value in program["values"].items()
    }


RDMA = ResultKind(
    key="rdma",
    meaning="Of each item of rdma.",
    model=RdmaResult,
    show=print_rdma,
    order=9,
    report=report_rdma,
    problems=_problems,
    columns=_measured,
)
