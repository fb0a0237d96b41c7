"""Latencies of barriers and counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.quantities.units import PS_PER_S, PS_PER_US
from weft.results.columns import Column, Look, ResultTable, T, grouped_thousandths
from weft.results.figure_tables import Layout
from weft.results.kinds import ItemResult, ResultKind
from weft.results.latencies import Latencies, latency_figure, problems_of_service
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec


@dataclass(frozen=True)
class BarrierResult(ItemResult):
    """Barriers of some ranks, one after the other."""

    algorithm: str
    """`in_network`: switches count ranks and release them. Others are messages between hosts."""
    ranks: int
    """How many wait for each other."""
    rounds: int
    """How many barriers."""
    time_ps: int
    """Duration of all barriers."""
    latency_ps: Latencies
    """Latencies of barriers, each from the last rank's arrival to the last rank's release."""
    unloaded_ps: int | None
    """Latency of a barrier in the network alone, in closed form; none with cut-through switching."""
    early: int
    """Ranks that went on before all had come, of all barriers: 0 unless something is wrong."""
    retransmissions: int
    """Packets sent again by all hosts meanwhile."""

    @property
    def ok(self) -> bool:
        """Whether no rank went on before all had come."""
        return self.early == 0


@dataclass(frozen=True)
class CounterResult(ItemResult):
    """Additions to counters of a switch."""

    derived: ClassVar[Mapping[str, str]] = {"additions_per_s": "additions_per_s"}

    operation: str
    """`fetch_and_add`, or `compare_and_swap`, tried until it finds what it expects."""
    clients: int
    """How many ranks add."""
    additions: int
    """Additions of all clients."""
    counters: int
    """That clients use in turn."""
    outstanding: int
    """Requests that a client keeps under way."""
    attempts: int
    """Requests of all additions; more than these with compare-and-swap."""
    time_ps: int
    """From the first request to the last answer."""
    latency_ps: Latencies
    """Latencies of additions, each from its first request on."""
    unloaded_ps: float | None
    """Latency of a request alone, in closed form, on average over clients; none with cut-through switching."""
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
        return self.additions * PS_PER_S / self.time_ps


def _in_us(title: str, value: str, sweep: Look | None = None) -> Column[Any]:
    return Column(title, value, scale=PS_PER_US, digits=3, sweep=sweep)


def _table(title: str, columns: Sequence[Column[T]]) -> ResultTable[T]:
    heading = f"[bold]{title.lower()}: µs[/bold] (time is emulated)"
    return ResultTable(title, columns, heading, layout=Layout(is_narrow=True), shown=grouped_thousandths)


_BARRIERS = _table(
    "Barriers",
    (
        Column[BarrierResult]("algorithm", "algorithm", is_name=True),
        Column("ranks", "ranks"),
        Column("rounds", "rounds"),
        _in_us("alone", "unloaded_ps"),
        _in_us("mean", "latency_ps.mean", sweep={"title": "mean barrier", "unit": "µs"}),
        _in_us("largest", "latency_ps.largest"),
        Column("early", "early"),
        Column("resent", "retransmissions"),
    ),
)
_COUNTERS = _table(
    "Counters of switches",
    (
        Column[CounterResult]("operation", "operation", is_name=True),
        Column("clients", "clients"),
        Column("counters", "counters"),
        Column("under way", "outstanding"),
        Column("additions", "additions"),
        Column("attempts", "attempts"),
        Column(
            "million/s", "additions_per_s", scale=1e6, digits=3,
            sweep={"title": "additions", "unit": "million/s", "more_is_better": True},
        ),
        _in_us("alone", "unloaded_ps"),
        _in_us("mean", "latency_ps.mean"),
        _in_us("largest", "latency_ps.largest"),
        Column("wrong", "wrong"),
        Column("resent", "retransmissions"),
    ),
)  # fmt: skip


def report_barriers(results: Sequence[BarrierResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of latencies, and a table with a row for each result."""
    rows = [(f"{each.algorithm}, {each.ranks} ranks", each.latency_ps) for each in results]
    yield latency_figure("Latencies of barriers", rows)
    yield _BARRIERS.part(results)


def report_counters(results: Sequence[CounterResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Bars of latencies, and a table with a row for each result."""
    rows = [(f"{each.operation}, {each.outstanding} under way", each.latency_ps) for each in results]
    yield latency_figure("Latencies of counters", rows)
    yield _COUNTERS.part(results)


BARRIERS = ResultKind(
    key="barriers",
    meaning="One for each algorithm of each item of barriers.",
    model=BarrierResult,
    is_checked=lambda _: True,
    report=report_barriers,
    tables=(_BARRIERS,),
    order=9,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="algorithm",
    labels=("algorithm", "ranks"),
)
COUNTERS = ResultKind(
    key="switch_counters",
    meaning="One for each item of additions to counters of a switch.",
    model=CounterResult,
    is_checked=lambda _: True,
    report=report_counters,
    tables=(_COUNTERS,),
    order=9,
    problems=lambda each: problems_of_service(each.latency_ps, each.time_ps),
    name="operation",
    labels=("operation", "clients"),
)
