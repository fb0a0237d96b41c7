"""What barriers and counters took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rich.console import Console

from weft.results.figure_tables import print_figures
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import Latencies, problems_of_service
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_S = 10**12
_PS_PER_US = 1e6
_LATENCIES = ("alone", "mean", "largest")


@dataclass(frozen=True)
class BarrierResult:
    """Barriers of some ranks, one after the other."""

    derived: ClassVar[Mapping[str, str]] = {}

    algorithm: str
    """`in_network`: switches count ranks and release them. Others are messages between hosts."""
    ranks: int
    """How many wait for each other."""
    rounds: int
    """How many barriers."""
    time_ps: int
    """What all of them took."""
    latency_ps: Latencies
    """Of barriers, each from when its last rank has come to when its last rank goes on."""
    unloaded_ps: int | None
    """That of a barrier in the network alone, in closed form; none with cut-through switching."""
    early: int
    """Ranks that went on before all had come, of all barriers: 0 unless something is wrong."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Whether no rank went on before all had come."""
        return self.early == 0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "latency_ps": asdict(self.latency_ps)}


@dataclass(frozen=True)
class CounterResult:
    """Additions to counters of a switch."""

    derived: ClassVar[Mapping[str, str]] = {"additions_per_s": "additions_per_s"}

    operation: str
    """`fetch_and_add`, or `compare_and_swap`, tried until it finds what it expects."""
    clients: int
    """How many ranks add."""
    additions: int
    """Of all clients."""
    counters: int
    """That clients use in turn."""
    outstanding: int
    """Requests that a client keeps under way."""
    attempts: int
    """Requests of all additions; more than these with compare-and-swap."""
    time_ps: int
    """From the first request to the last answer."""
    latency_ps: Latencies
    """Of additions, each from its first request on."""
    unloaded_ps: float | None
    """Of a request alone, in closed form, on average over clients; none with cut-through switching."""
    wrong: int
    """Values that additions should have found and none has: each finds one that no other of its counter does."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Whether each addition was carried out exactly once."""
        return self.wrong == 0

    @property
    def additions_per_s(self) -> float:
        """Return additions per second of emulated time."""
        return self.additions * _PS_PER_S / self.time_ps

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with derived figures."""
        plain = {**vars(self), "latency_ps": asdict(self.latency_ps)}
        return plain | {key: getattr(self, name) for key, name in self.derived.items()}


def _in_us(unloaded_ps: float | None, latency_ps: Latencies) -> list[Cell]:
    """Return `_LATENCIES` in microseconds."""
    chosen = (latency_ps.mean, latency_ps.largest)
    alone: Cell = "" if unloaded_ps is None else round(unloaded_ps / _PS_PER_US, 3)
    return [alone, *(round(each / _PS_PER_US, 3) for each in chosen)]


_BARRIER_COLUMNS = (
    "algorithm",
    "ranks",
    "rounds",
    *_LATENCIES,
    "early",
    "resent",
)


def _barrier_row(each: BarrierResult) -> list[Cell]:
    return [
        each.algorithm,
        each.ranks,
        each.rounds,
        *_in_us(each.unloaded_ps, each.latency_ps),
        each.early,
        each.retransmissions,
    ]


_COUNTER_COLUMNS = (
    "operation",
    "clients",
    "counters",
    "under way",
    "additions",
    "attempts",
    "million/s",
    *_LATENCIES,
    "wrong",
    "resent",
)


def _counter_row(each: CounterResult) -> list[Cell]:
    return [
        each.operation,
        each.clients,
        each.counters,
        each.outstanding,
        each.additions,
        each.attempts,
        round(each.additions_per_s / 1e6, 3),
        *_in_us(each.unloaded_ps, each.latency_ps),
        each.wrong,
        each.retransmissions,
    ]


def _print(console: Console, what: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    title = f"[bold]{what}: µs[/bold] (time is emulated)"
    shown = (list(map(_shown, row)) for row in rows)
    print_figures(console, title, columns, shown, names=columns[:1], is_narrow=True)


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:,.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def print_barriers(console: Console, results: Sequence[BarrierResult]) -> None:
    """Print a row for each."""
    _print(console, "barriers", _BARRIER_COLUMNS, map(_barrier_row, results))


def print_counters(console: Console, results: Sequence[CounterResult]) -> None:
    """Print a row for each."""
    _print(console, "counters of switches", _COUNTER_COLUMNS, map(_counter_row, results))


def report_barriers(results: Sequence[BarrierResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return a table with a row for each."""
    yield ReportTable("Barriers", list(_BARRIER_COLUMNS), list(map(_barrier_row, results)))


def report_counters(results: Sequence[CounterResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Return a table with a row for each."""
    yield ReportTable("Counters of switches", list(_COUNTER_COLUMNS), list(map(_counter_row, results)))


BARRIERS = ResultKind(
    key="barriers",
    meaning="Of each algorithm of each item of barriers.",
    model=BarrierResult,
    is_checked=lambda _: True,
    show=print_barriers,
    order=9,
    report=report_barriers,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="algorithm",
    labels=("algorithm", "ranks"),
    measured=(MeasuredColumn("mean barrier", "µs", 3, "latency_ps.mean", _PS_PER_US),),
)
COUNTERS = ResultKind(
    key="switch_counters",
    meaning="Of each item of additions to counters of a switch.",
    model=CounterResult,
    is_checked=lambda _: True,
    show=print_counters,
    order=9,
    report=report_counters,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="operation",
    labels=("operation", "clients"),
    measured=(MeasuredColumn("additions", "million/s", 3, "additions_per_s", 1e6),),
)
