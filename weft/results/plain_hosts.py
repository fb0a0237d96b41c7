"""Kinds of results of programs on hosts' IP stacks: pings, routes, UDP flows, replays, scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import format_rate, format_time
from weft.quantities.units import PS_PER_US
from weft.results.columns import Column, ResultTable, T, grouped_thousandths
from weft.results.figure_tables import Layout
from weft.results.kinds import ResultKind
from weft.results.latencies import Latencies
from weft.results.plain_hosts_model import Hop, PingResult, ReplayResult, RouteResult, ScriptResult, UdpResult
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec

MOST_SHOWN = 32
"""Rows of a table on the terminal, and lines of a script."""
_NOT_SENT = Column[Any]("not sent", "not_sent", only_if=lambda rows: any(each.not_sent for each in rows))


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _in_us(title: str, value: str | Callable[[Any], Any]) -> Column[Any]:
    return Column(title, value, scale=PS_PER_US, digits=3)


def _at(place: int) -> Callable[[UdpResult], int | None]:
    return lambda each: None if each.delay_ps is None else each.delay_ps.percentiles[place]


def _table(title: str, heading: str, *columns: Column[T]) -> ResultTable[T]:
    return ResultTable(
        title,
        columns,
        f"[bold]{heading}[/bold]",
        layout=Layout(is_narrow=True),
        shown=grouped_thousandths,
        most_printed=MOST_SHOWN,
    )


_FROM = Column[Any]("from", "source", is_name=True)
_TO = Column[Any]("to", "destination", is_name=True)
_HOST = Column[Any]("host", "host", is_name=True)
_LOST = Column[Any]("lost", "loss", form=_percent, sweep={"title": "loss", "form": None, "digits": 4})
_GOODPUT = Column[UdpResult](
    "goodput",
    "goodput_bps",
    form=lambda rate_bps: format_rate(round(rate_bps)),
    sweep={"unit": "Gb/s", "scale": 1e9, "digits": 3, "more_is_better": True},
)
_PINGS = _table(
    "Pings: round trips in µs",
    "pings: µs (time is emulated)",
    _FROM,
    _TO,
    Column("sent", "sent"),
    _NOT_SENT,
    Column("answered", "answered"),
    _LOST,
    _in_us("min", "round_trip_ps.least"),
    _in_us("avg", "round_trip_ps.mean"),
    _in_us("max", "round_trip_ps.largest"),
)
_UDP = _table(
    "UDP: delay and jitter in µs",
    "UDP: one-way delay and jitter in µs (time is emulated)",
    _FROM,
    _TO,
    Column("sent", "sent"),
    _NOT_SENT,
    Column("received", "received"),
    _LOST,
    _GOODPUT,
    Column[UdpResult]("marked", lambda each: each.marked / each.received if each.received else 0.0, form=_percent),
    Column("late", "reordered"),
    _in_us("p50", _at(0)),
    _in_us("p99", _at(2)),
    _in_us("max", "delay_ps.largest"),
    _in_us("jitter", "jitter_ps.mean"),
)
_ROUTES = _table(
    "Routes",
    "routes (time is emulated)",
    Column[tuple[RouteResult, Hop]]("from", lambda row: row[0].source, is_name=True),
    Column("to", lambda row: row[0].destination, is_name=True),
    Column("hop", lambda row: row[1].hop_limit),
    Column("who", lambda row: " ".join(row[1].responders) or "*", is_name=True),
    Column("µs", lambda row: _round_trips(row[1]) or "*"),
)
_REPLAYS = _table(
    "Replayed captures",
    "replayed captures",
    _HOST,
    Column("file", "file", is_name=True),
    Column[ReplayResult]("frames", "frames", sweep={"more_is_better": True}),
    Column("bytes", "sent_bytes"),
    Column("not sent", "not_sent"),
    Column("time", "time_ps", form=format_time),
)
_SCRIPTS = _table(
    "Scripted hosts",
    "scripted hosts",
    _HOST,
    Column("script", "script", is_name=True),
    Column[ScriptResult]("sent", "sent"),
    Column("not sent", "not_sent"),
    Column("seen", "seen", sweep={"title": "frames seen", "more_is_better": True}),
    Column(
        "reports",
        lambda each: ", ".join(f"{key}: {value}" for key, value in each.reports.items()),
        is_name=True,
    ),
)


def _round_trips(hop: Hop) -> str:
    return " ".join(f"{time_ps / PS_PER_US:,.3f}" for time_ps in hop.round_trip_ps)


def _hops(results: Sequence[RouteResult]) -> list[tuple[RouteResult, Hop]]:
    return [(each, hop) for each in results for hop in each.hops]


def print_routes(console: Console, results: Sequence[RouteResult]) -> None:
    """Print a line for each hop."""
    _ROUTES.print(console, _hops(results))


def print_scripts(console: Console, results: Sequence[ScriptResult]) -> None:
    """Print a line for each host, and what scripts have said in order of time."""
    _SCRIPTS.print(console, results)
    lines = sorted((line.time_ps, each.host, line.text) for each in results for line in each.printed)
    for time_ps, host, text in lines[:MOST_SHOWN]:
        console.print(f"{escape(format_time(time_ps)):>12} {escape(host)}: {escape(text)}")
    if len(lines) > MOST_SHOWN:
        console.print(f"… and {len(lines) - MOST_SHOWN:,} more lines (results.json has all)")


def report_routes(results: Sequence[RouteResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of hops."""
    yield _ROUTES.part(_hops(results))


def _latency_problems(key: str, latency_ps: Latencies | None) -> Iterator[tuple[str, str]]:
    for below, wrong in latency_ps.problems() if latency_ps is not None else ():
        yield f"{key}.{below}", wrong


def _ping_problems(each: PingResult) -> Iterator[tuple[str, str]]:
    if each.sent + each.not_sent < 1:
        yield "sent", f"is {each.sent}, and not_sent {each.not_sent} (valid: 1 and more together)"
    yield from _latency_problems("round_trip_ps", each.round_trip_ps)


def _udp_problems(each: UdpResult) -> Iterator[tuple[str, str]]:
    yield from _latency_problems("delay_ps", each.delay_ps)
    yield from _latency_problems("jitter_ps", each.jitter_ps)


PINGS = ResultKind(
    key="pings",
    meaning="One for each pair of hosts of each item of pings.",
    model=PingResult,
    is_checked=lambda each: not each.ok or each.answered == each.sent + each.not_sent,
    tables=(_PINGS,),
    order=10,
    problems=_ping_problems,
    name="source",
    labels=("source", "destination"),
)
ROUTES = ResultKind(
    key="routes",
    meaning="One for each pair of hosts of each item of traceroutes.",
    model=RouteResult,
    show=print_routes,
    order=10,
    report=report_routes,
    name="source",
    labels=("source", "destination"),
)
UDP_FLOWS = ResultKind(
    key="udp",
    meaning="One for each UDP source and its sink.",
    model=UdpResult,
    is_checked=lambda each: not each.ok,
    tables=(_UDP,),
    columns=(_GOODPUT,),
    order=10,
    problems=_udp_problems,
    name="source",
    labels=("source", "destination"),
)
REPLAYS = ResultKind(
    key="replays",
    meaning="One for each capture that a host has replayed.",
    model=ReplayResult,
    tables=(_REPLAYS,),
    order=10,
    name="host",
    labels=("host", "file"),
)
SCRIPTS = ResultKind(
    key="scripts",
    meaning="One for each scripted host.",
    model=ScriptResult,
    tables=(_SCRIPTS,),
    show=print_scripts,
    order=10,
    name="host",
    labels=("host", "script"),
)
