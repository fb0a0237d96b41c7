"""Kinds of results of programs on hosts' IP stacks: pings, routes, UDP flows, replays, scripts."""

from __future__ import annotations

from collections.abc import Iterator

from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.latencies import Latencies
from weft.results.plain_hosts_model import PingResult, ReplayResult, RouteResult, ScriptResult, UdpResult
from weft.results.plain_hosts_tables import (
    print_pings,
    print_replays,
    print_routes,
    print_scripts,
    print_udp,
    report_pings,
    report_replays,
    report_routes,
    report_scripts,
    report_udp,
)


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
    meaning="Of each pair of hosts of each item of pings.",
    model=PingResult,
    is_checked=lambda each: not each.ok or each.answered == each.sent + each.not_sent,
    show=print_pings,
    order=10,
    report=report_pings,
    problems=_ping_problems,
    name="source",
    labels=("source", "destination"),
    measured=(MeasuredColumn("loss", "", 4, "loss"),),
)
ROUTES = ResultKind(
    key="routes",
    meaning="Of each pair of hosts of each item of traceroutes.",
    model=RouteResult,
    show=print_routes,
    order=10,
    report=report_routes,
    name="source",
    labels=("source", "destination"),
)
UDP_FLOWS = ResultKind(
    key="udp",
    meaning="Of each UDP source and its sink.",
    model=UdpResult,
    is_checked=lambda each: not each.ok,
    show=print_udp,
    order=10,
    report=report_udp,
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
    show=print_replays,
    order=10,
    report=report_replays,
    name="host",
    labels=("host", "file"),
    measured=(MeasuredColumn("frames", "", 0, "frames"),),
)
SCRIPTS = ResultKind(
    key="scripts",
    meaning="Of each scripted host.",
    model=ScriptResult,
    show=print_scripts,
    order=10,
    report=report_scripts,
    name="host",
    labels=("host", "script"),
    measured=(MeasuredColumn("frames seen", "", 0, "seen"),),
)
