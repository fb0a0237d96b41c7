"""What programs on hosts' IP stacks found, as tables of the terminal and of a report's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import format_rate, format_time
from weft.results.figure_tables import print_figures
from weft.results.latencies import Latencies
from weft.results.plain_hosts_model import PingResult, ReplayResult, RouteResult, ScriptResult, UdpResult
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_PS_PER_US = 1e6
MOST_SHOWN = 32
"""Rows of a table on the terminal, and lines of a script."""


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


def _with_not_sent(
    columns: Sequence[str], rows: Iterable[list[Cell]], results: Sequence[PingResult | UdpResult]
) -> tuple[list[str], list[list[Cell]]]:
    """Add a column of what did not leave its host, behind what did, if there is anything."""
    made = list(rows)
    if not any(each.not_sent for each in results):
        return list(columns), made
    at = columns.index("sent") + 1
    for row, each in zip(made, results, strict=True):
        row.insert(at, each.not_sent)
    return [*columns[:at], "not sent", *columns[at:]], made


def print_pings(console: Console, results: Sequence[PingResult]) -> None:
    """Print a line for each pair of hosts."""
    table = _with_not_sent(_PING_COLUMNS, map(_ping_row, results), results)
    _print(console, "pings: µs (time is emulated)", *table)


def print_udp(console: Console, results: Sequence[UdpResult]) -> None:
    """Print a line for each source and its sink."""
    _print(
        console,
        "UDP: one-way delay and jitter in µs (time is emulated)",
        *_with_not_sent(_UDP_COLUMNS, map(_udp_row, results), results),
    )


def print_routes(console: Console, results: Sequence[RouteResult]) -> None:
    """Print a line for each hop."""
    rows = [row for each in results for row in _route_rows(each)]
    _print(console, "routes (time is emulated)", _ROUTE_COLUMNS, rows)


def print_replays(console: Console, results: Sequence[ReplayResult]) -> None:
    """Print a line for each host."""
    _print(console, "replayed captures", _REPLAY_COLUMNS, map(_replay_row, results))


def print_scripts(console: Console, results: Sequence[ScriptResult]) -> None:
    """Print a line for each host, and what scripts have said in order of time."""
    _print(console, "scripted hosts", _SCRIPT_COLUMNS, map(_script_row, results))
    lines = sorted((line.time_ps, each.host, line.text) for each in results for line in each.printed)
    for time_ps, host, text in lines[:MOST_SHOWN]:
        console.print(f"{escape(format_time(time_ps)):>12} {escape(host)}: {escape(text)}")
    if len(lines) > MOST_SHOWN:
        console.print(f"… and {len(lines) - MOST_SHOWN:,} more lines (results.json has all)")


def report_pings(results: Sequence[PingResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of pings."""
    table = _with_not_sent(_PING_COLUMNS, map(_ping_row, results), results)
    yield ReportTable("Pings: round trips in µs", *table)


def report_udp(results: Sequence[UdpResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of UDP."""
    yield ReportTable(
        "UDP: delay and jitter in µs", *_with_not_sent(_UDP_COLUMNS, map(_udp_row, results), results)
    )


def report_routes(results: Sequence[RouteResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of hops."""
    rows = [row for each in results for row in _route_rows(each)]
    yield ReportTable("Routes", list(_ROUTE_COLUMNS), rows)


def report_replays(results: Sequence[ReplayResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of captures."""
    yield ReportTable("Replayed captures", list(_REPLAY_COLUMNS), list(map(_replay_row, results)))


def report_scripts(results: Sequence[ScriptResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the table of scripts."""
    yield ReportTable("Scripted hosts", list(_SCRIPT_COLUMNS), list(map(_script_row, results)))
