"""Reports of hosts' programs, and times of their requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from weft.quantities.readable import counted, format_time
from weft.quantities.units import PS_PER_US
from weft.results.columns import Column, ResultTable, grouped
from weft.results.counters import Datagrams
from weft.results.figure_tables import Layout, print_figures
from weft.results.kinds import ItemResult, ResultKind
from weft.results.latencies import Latencies, latency_columns
from weft.results.report_parts import Axis, Cell, Curve, CurveFigure, ReportPart
from weft.topologies import FabricSpec

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
    """Bytes of successful requests."""
    latency_ps: Latencies | None
    """Latencies of successful requests, from posting to completion; null for receives."""


@dataclass(frozen=True)
class DatagramsResult:
    """Datagrams of UET's service UUD, which nobody sends again."""

    sent: int
    """By all programs."""
    received: int
    """How many a receive took. A link's duplicates count, too."""
    without_receive: int
    """Dropped by receivers that had posted no receive."""
    too_long: int
    """Dropped by receivers, because they were longer than the receive."""
    trimmed: int
    """Dropped by receivers, because a switch had cut off their payload."""
    lost: int
    """Lost on the way, or come when their queue pair was closed."""

    @classmethod
    def of(cls, counted: Datagrams) -> DatagramsResult:
        """Return what became of the datagrams that hosts have counted."""
        dropped = counted.without_receive + counted.too_long + counted.trimmed
        return cls(**vars(counted), lost=max(0, counted.sent - counted.received - dropped))

    @property
    def missing(self) -> int:
        """Return how many reached no program."""
        return self.without_receive + self.too_long + self.trimmed + self.lost

    def __str__(self) -> str:
        """Say what became of them."""
        text = f"{counted(self.sent, 'datagram')}: {self.received:,} received"
        if not self.missing:
            return text
        causes = {
            "lost on the way": self.lost,
            "dropped for want of a receive": self.without_receive,
            "longer than the receive": self.too_long,
            "trimmed by a switch": self.trimmed,
        }
        return ", ".join([text, *(f"{packets:,} {cause}" for cause, packets in causes.items() if packets)])


@dataclass(frozen=True)
class RdmaResult(ItemResult):
    """Programs of hosts, which began at the same time, until the last one returned."""

    time_ps: int
    """How long it took."""
    programs: list[ProgramResult]
    """By host, in the order of the scenario."""
    operations: list[OperationResult]
    """Figures of each opcode that occurred."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""
    datagrams: DatagramsResult | None = None
    """The fate of datagrams; null unless the transport's service is `uud`."""


@dataclass(frozen=True)
class _Reported:
    """A number or text that a program reported, in the run of a number."""

    run: int
    program: ProgramResult
    name: str
    value: float | str


def _reported(number: int, result: RdmaResult) -> list[_Reported]:
    return [
        _Reported(number, program, name, value)
        for program in result.programs
        for name, value in (program.values | program.texts).items()
    ]


def _whole(value: float | str) -> Cell:
    """Return a whole number as one: results that were read back have all as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _failures(result: OperationResult) -> str:
    return ", ".join(f"{count} {status.removeprefix('IBV_WC_')}" for status, count in result.failed.items())


def _number(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"


def _latencies(row: tuple[int, OperationResult]) -> Latencies | None:
    return row[1].latency_ps


_REQUESTS = ResultTable[tuple[int, OperationResult]](
    "RDMA requests",
    (
        Column("run", lambda row: row[0], terminal=None),
        Column(
            "requests",
            lambda row: row[1].opcode.removeprefix("IBV_WR_").removeprefix("IBV_WC_"),
            is_name=True,
            page={"title": "opcode", "value": lambda row: row[1].opcode},
        ),
        Column("count", lambda row: row[1].operations),
        Column("bytes", lambda row: row[1].bytes),
        *(
            replace(each, terminal={"form": "{:,.2f}".format} if each.title in _SHOWN else None)
            for each in latency_columns(_latencies, scale=PS_PER_US, digits=3, page={"unit": "µs"})
        ),
        Column("failed", lambda row: _failures(row[1]), is_name=True),
    ),
    note="percentiles of requests' latencies",
    layout=Layout(is_narrow=True),
    shown=grouped,
)
_DATAGRAMS = ResultTable[tuple[int, DatagramsResult]](
    "Datagrams",
    (
        Column("run", lambda row: row[0]),
        Column("sent", lambda row: row[1].sent),
        Column("received", lambda row: row[1].received),
        Column("lost on the way", lambda row: row[1].lost),
        Column("without a receive", lambda row: row[1].without_receive),
        Column("longer than the receive", lambda row: row[1].too_long),
        Column("trimmed", lambda row: row[1].trimmed),
    ),
)
_REPORTED = ResultTable[_Reported](
    "What programs report",
    (
        Column("run", "run", terminal=None),
        Column("host", "program.host", is_name=True),
        Column("program", "program.program", is_name=True),
        Column("name", "name", is_name=True),
        Column(
            "value",
            "value",
            form=lambda value: value if isinstance(value, str) else _number(value),
            page={"form": _whole},
        ),
    ),
    "[bold]what programs report[/bold]",
)


def print_rdma(console: Console, results: Sequence[RdmaResult]) -> None:
    """Print what programs reported, and what requests took."""
    for number, result in enumerate(results, 1):
        _REQUESTS.print(
            console,
            [(number, each) for each in result.operations],
            f"[bold]rdma: {counted(len(result.programs), 'program')} in {format_time(result.time_ps)}[/bold], "
            "latencies in µs (time is emulated)",
        )
        if result.datagrams is not None:
            style = "yellow" if result.datagrams.missing else ""
            console.print(str(result.datagrams), style=style, highlight=False)
        _REPORTED.print(console, _reported(number, result))
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
    curves: dict[str, list[Curve]] = {}
    numbered = [*enumerate(results, 1)]
    for number, result in numbered:
        for program in result.programs:
            for name, points in program.series.items():
                label = program.host if len(results) == 1 else f"{number} {program.host}"
                x, y = zip(*points, strict=True)
                curves.setdefault(name, []).append(Curve(label, x, y))
    yield _REQUESTS.part([(number, each) for number, result in numbered for each in result.operations])
    yield _DATAGRAMS.part([(number, result.datagrams) for number, result in numbered if result.datagrams])
    yield _REPORTED.part([each for number, result in numbered for each in _reported(number, result)])
    for name, found in curves.items():
        yield CurveFigure(name, Axis(""), Axis(""), found)


def datagram_warnings(results: Iterable[RdmaResult]) -> Iterator[str]:
    """Yield a sentence for each run of programs with datagrams that reached no program."""
    for each in results:
        if each.datagrams is not None and each.datagrams.missing:
            yield f"programs have lost data, as service uud may: of {each.datagrams}"


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
        f"{program['host']} {name}": value for program in plain["programs"] for name, value in program["values"].items()
    }


RDMA = ResultKind(
    key="rdma",
    meaning="One for each item of rdma.",
    model=RdmaResult,
    show=print_rdma,
    order=9,
    report=report_rdma,
    problems=_problems,
    flattened=_measured,
)
