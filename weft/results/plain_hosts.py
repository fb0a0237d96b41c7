"""What programs on hosts' IP stacks found: pings, routes, UDP flows, replays, scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import format_rate, format_time
from weft.results.figure_tables import print_figures
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import Latencies
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_US = 1e6
_PS_PER_S = 1e12
MOST_SHOWN = 32
"""Rows of a table on the terminal, and lines of a script."""


@dataclass(frozen=True)
class PingResult:
    """ICMP echo requests from one host to another."""

    derived: ClassVar[Mapping[str, str]] = {"loss": "loss"}

    source: str
    """The host that asks."""
    destination: str
    """The host that answers."""
    sent: int
    """Requests."""
    answered: int
    """Requests with an answer within `timeout`."""
    unreachable: int
    """Requests that somebody has reported as not deliverable."""
    duplicates: int
    """Answers to what had been answered."""
    round_trip_ps: Latencies | None
    """Of those that were answered; none without an answer."""

    @property
    def ok(self) -> bool:
        """Return True: losses are a finding."""
        return True

    @property
    def loss(self) -> float:
        """Return the share of requests without an answer."""
        return 1 - self.answered / self.sent

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with the share that was lost."""
        return {**asdict(self), "loss": self.loss}


@dataclass(frozen=True)
class Hop:
    """Who has answered to packets with a hop limit."""

    hop_limit: int
    """With which they were sent."""
    responders: tuple[str, ...]
    """Each address once; none if nobody has answered."""
    round_trip_ps: tuple[int, ...]
    """Of the probes that were answered."""


@dataclass(frozen=True)
class RouteResult:
    """Hops from one host to another."""

    source: str
    """The host that asks."""
    destination: str
    """The host at the end."""
    reached: bool
    """Whether the destination has answered."""
    hops: tuple[Hop, ...]
    """Up to the first at which the destination has answered."""

    @property
    def ok(self) -> bool:
        """Return True: silent hops are a finding."""
        return True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class UdpResult:
    """Datagrams from a source to a sink."""

    derived: ClassVar[Mapping[str, str]] = {"lost": "lost", "loss": "loss"}

    source: str
    """The host that sends."""
    destination: str
    """The host that receives."""
    sent: int
    """Datagrams."""
    not_sent: int
    """Of those, what the host's own queue had no room for, or had no route."""
    received: int
    """Datagrams, each counted once."""
    duplicates: int
    """Copies that came besides."""
    reordered: int
    """Datagrams that came after one that was sent later."""
    marked: int
    """Datagrams that a switch has marked (CE)."""
    goodput_bps: float
    """Received bits of IP packets over the time from the start to the last of them."""
    delay_ps: Latencies | None
    """One-way, queueing included; none if nothing came."""
    jitter_ps: Latencies | None
    """Differences of the delays of successive arrivals (RFC 3393), without sign; none with fewer than two."""

    @property
    def ok(self) -> bool:
        """Return True: losses are a finding."""
        return True

    @property
    def lost(self) -> int:
        """Return how many datagrams did not come."""
        return self.sent - self.received

    @property
    def loss(self) -> float:
        """Return the share that did not come."""
        return self.lost / self.sent if self.sent else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain data with losses."""
        return {**asdict(self), "lost": self.lost, "loss": self.loss}


@dataclass(frozen=True)
class ReplayResult:
    """Frames of a capture that a host has sent."""

    host: str
    """Which."""
    file: str
    """The capture's name."""
    frames: int
    """That were sent."""
    sent_bytes: int
    """Of these."""
    not_sent: int
    """Frames that found the host's own queue full."""
    time_ps: int
    """From the first to the last."""

    @property
    def ok(self) -> bool:
        """Return True."""
        return True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True)
class PrintedLine:
    """A line that a script has printed."""

    time_ps: int
    """Since the run's start."""
    text: str
    """The line."""


@dataclass(frozen=True)
class ScriptResult:
    """What a scripted host did and said."""

    host: str
    """Which."""
    script: str
    """Its class."""
    sent: int
    """Frames."""
    not_sent: int
    """Frames that found the host's own queue full."""
    seen: int
    """Frames that came to it."""
    reports: dict[str, Any]
    """What it has reported, by key."""
    printed: tuple[PrintedLine, ...]
    """In order."""

    @property
    def ok(self) -> bool:
        """Return True."""
        return True

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def _us(time_ps: float) -> Cell:
    return round(time_ps / _PS_PER_US, 3)


def _figures(latency_ps: Latencies | None, names: Sequence[str]) -> list[Cell]:
    if latency_ps is None:
        return ["" for _ in names]
    found: Mapping[str, int] = {
        "min": latency_ps.least,
        "avg": latency_ps.mean,
        "p50": latency_ps.percentiles[0],
        "p99": latency_ps.percentiles[2],
        "max": latency_ps.largest,
    }
    return [_us(found[name]) for name in names]


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


_PING_FIGURES = ("min", "avg", "max")
_PING_COLUMNS = ("from", "to", "sent", "answered", "lost", *_PING_FIGURES)
_UDP_DELAYS = ("p50", "p99", "max")
_UDP_COLUMNS = ("from", "to", "sent", "received", "lost", "goodput", "marked", "late", *_UDP_DELAYS, "jitter")
_ROUTE_COLUMNS = ("from", "to", "hop", "who", "µs")
_REPLAY_COLUMNS = ("host", "file", "frames", "bytes", "not sent", "time")
_SCRIPT_COLUMNS = ("host", "script", "sent", "not sent", "seen", "reports")


def _ping_row(each: PingResult) -> list[Cell]:
    figures = _figures(each.round_trip_ps, _PING_FIGURES)
    return [each.source, each.destination, each.sent, each.answered, _percent(each.loss), *figures]


def _udp_row(each: UdpResult) -> list[Cell]:
    return [
        each.source,
        each.destination,
        each.sent,
        each.received,
        _percent(each.loss),
        format_rate(round(each.goodput_bps)),
        _percent(each.marked / each.received if each.received else 0.0),
        each.reordered,
        *_figures(each.delay_ps, _UDP_DELAYS),
        *_figures(each.jitter_ps, ("avg",)),
    ]


def _route_rows(each: RouteResult) -> Iterator[list[Cell]]:
    for hop in each.hops:
        times = " ".join(f"{_us(time):,.3f}" for time in hop.round_trip_ps)
        who = " ".join(hop.responders) or "*"
        yield [each.source, each.destination, hop.hop_limit, who, times or "*"]


def _replay_row(each: ReplayResult) -> list[Cell]:
    return [each.host, each.file, each.frames, each.sent_bytes, each.not_sent, format_time(each.time_ps)]


def _script_row(each: ScriptResult) -> list[Cell]:
    reports = ", ".join(f"{key}: {value}" for key, value in each.reports.items())
    return [each.host, each.script, each.sent, each.not_sent, each.seen, reports]


def _shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:,.3f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _print(console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    shown = [list(map(_shown, row)) for row in rows]
    names = [name for name in ("from", "to", "who", "host", "file", "script", "reports") if name in columns]
    print_figures(console, f"[bold]{title}[/bold]", columns, shown[:MOST_SHOWN], names=names, is_narrow=True)
    if len(shown) > MOST_SHOWN:
        console.print(f"… and {len(shown) - MOST_SHOWN:,} more")


def _print_pings(console: Console, results: Sequence[PingResult]) -> None:
    _print(console, "pings: µs (time is emulated)", _PING_COLUMNS, map(_ping_row, results))


def _print_udp(console: Console, results: Sequence[UdpResult]) -> None:
    _print(
        console,
        "UDP: one-way delay and jitter in µs (time is emulated)",
        _UDP_COLUMNS,
        map(_udp_row, results),
    )


def _print_routes(console: Console, results: Sequence[RouteResult]) -> None:
    rows = [row for each in results for row in _route_rows(each)]
    _print(console, "routes (time is emulated)", _ROUTE_COLUMNS, rows)


def _print_replays(console: Console, results: Sequence[ReplayResult]) -> None:
    _print(console, "replayed captures", _REPLAY_COLUMNS, map(_replay_row, results))


def _print_scripts(console: Console, results: Sequence[ScriptResult]) -> None:
    _print(console, "scripted hosts", _SCRIPT_COLUMNS, map(_script_row, results))
    lines = sorted((line.time_ps, each.host, line.text) for each in results for line in each.printed)
    for time_ps, host, text in lines[:MOST_SHOWN]:
        console.print(f"{escape(format_time(time_ps)):>12} {escape(host)}: {escape(text)}")
    if len(lines) > MOST_SHOWN:
        console.print(f"… and {len(lines) - MOST_SHOWN:,} more lines (results.json has all)")


def _report_pings(results: Sequence[PingResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield ReportTable("Pings: round trips in µs", list(_PING_COLUMNS), list(map(_ping_row, results)))


def _report_udp(results: Sequence[UdpResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield ReportTable("UDP: delay and jitter in µs", list(_UDP_COLUMNS), list(map(_udp_row, results)))


def _report_routes(results: Sequence[RouteResult], _: FabricSpec) -> Iterator[ReportPart]:
    rows = [row for each in results for row in _route_rows(each)]
    yield ReportTable("Routes", list(_ROUTE_COLUMNS), rows)


def _report_replays(results: Sequence[ReplayResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield ReportTable("Replayed captures", list(_REPLAY_COLUMNS), list(map(_replay_row, results)))


def _report_scripts(results: Sequence[ScriptResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield ReportTable("Scripted hosts", list(_SCRIPT_COLUMNS), list(map(_script_row, results)))


def _latency_problems(key: str, latency_ps: Latencies | None) -> Iterator[tuple[str, str]]:
    for below, wrong in latency_ps.problems() if latency_ps is not None else ():
        yield f"{key}.{below}", wrong


def _ping_problems(each: PingResult) -> Iterator[tuple[str, str]]:
    if each.sent < 1:
        yield "sent", f"is {each.sent} (valid: 1 and more)"
    yield from _latency_problems("round_trip_ps", each.round_trip_ps)


def _udp_problems(each: UdpResult) -> Iterator[tuple[str, str]]:
    yield from _latency_problems("delay_ps", each.delay_ps)
    yield from _latency_problems("jitter_ps", each.jitter_ps)


PINGS = ResultKind(
    key="pings",
    meaning="Of each pair of hosts of each item of pings.",
    model=PingResult,
    show=_print_pings,
    order=10,
    report=_report_pings,
    problems=_ping_problems,
    name="source",
    labels=("source", "destination"),
    measured=(MeasuredColumn("loss", "", 4, "loss"),),
)
ROUTES = ResultKind(
    key="routes",
    meaning="Of each pair of hosts of each item of traceroutes.",
    model=RouteResult,
    show=_print_routes,
    order=10,
    report=_report_routes,
    name="source",
    labels=("source", "destination"),
)
UDP_FLOWS = ResultKind(
    key="udp",
    meaning="Of each UDP source and its sink.",
    model=UdpResult,
    show=_print_udp,
    order=10,
    report=_report_udp,
    problems=_udp_problems,
    name="source",
    labels=("source", "destination"),
    measured=(
        MeasuredColumn("goodput", "Gb/s", 3, "goodput_bps", 1e9),
        MeasuredColumn("loss", "", 4, "loss"),
    ),
)
REPLAYS = ResultKind(
    key="replays",
    meaning="Of each capture that a host has replayed.",
    model=ReplayResult,
    show=_print_replays,
    order=10,
    report=_report_replays,
    name="host",
    labels=("host", "file"),
    measured=(MeasuredColumn("frames", "", 0, "frames"),),
)
SCRIPTS = ResultKind(
    key="scripts",
    meaning="Of each scripted host.",
    model=ScriptResult,
    show=_print_scripts,
    order=10,
    report=_report_scripts,
    name="host",
    labels=("host", "script"),
    measured=(MeasuredColumn("frames seen", "", 0, "seen"),),
)
