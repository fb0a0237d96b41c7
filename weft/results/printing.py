"""A run's results as tables on the terminal."""

from __future__ import annotations

import json
from typing import Any, cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weft.quantities.readable import format_rate, format_time
from weft.results.controller_events import print_controller_events
from weft.results.credits import print_credits
from weft.results.fidelity import print_fidelity
from weft.results.figure_tables import print_figures
from weft.results.kinds import result_kinds
from weft.results.link_events import print_link_events
from weft.results.link_faults import print_link_faults
from weft.results.link_loads import print_link_loads
from weft.results.losses import Traceable, print_losses
from weft.results.model import LATENESS_BOUND, IntPath, Lateness, PlaneResult, Results
from weft.results.packet_conservation import print_packet_conservation
from weft.results.queue_depth_ages import print_queue_depth_ages
from weft.results.switch_memory import print_memory
from weft.traffic.int_stack import MOST_QUEUE_BYTES


def make_console() -> Console:
    """Return a console for tables; where there is no terminal to fit them to, lines may be long."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


def show_run(run: Results, as_json: bool, traceable: Traceable | None = None) -> None:
    """Print a run on standard output: as JSON, or as tables."""
    if as_json:
        print(json.dumps(run.as_dict(), indent=1))
    else:
        print_run(make_console(), run, traceable)


class _InvalidConsole:
    """A console that marks what it prints: times, rates and counts of a run whose events were served too late."""

    _MARK = "[bold red]INVALID[/bold red]"

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, what: Any = "", *arguments: Any, **options: Any) -> None:
        """Print a table as it is, whose heading has the mark, and mark every line of text."""
        if isinstance(what, str) and what.strip() and self._MARK not in what:
            start = len(what) - len(what.lstrip("\n"))
            what = f"{what[:start]}{self._MARK} {what[start:]}"
        self._console.print(what, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console, name)


def print_run(console: Console, run: Results, traceable: Traceable | None = None) -> None:
    """Print all tables of a run; if its times mean nothing, the first line says so, and all others bear a mark.

    Where packets were lost in switches, commands follow that show one, if it is known what to trace.
    """
    if run.lateness is not None and not run.lateness.valid:
        console = cast("Console", _InvalidConsole(console))
        console.print("the machine served events too late: times, rates and queues below do not hold")
    for kind in result_kinds():
        if found := run.of(kind):
            kind.print(console, found)
    _print_planes(console, run.planes)
    print_link_loads(console, run.link_loads)
    print_memory(console, run.memory)
    print_credits(console, run.credits)
    print_queue_depth_ages(console, run.queue_depth_ages)
    print_link_faults(console, run.link_faults)
    print_link_events(console, run.link_events)
    print_controller_events(console, run.controller_events)
    for path in run.int_paths:
        _print_int_path(console, path)
    if run.drops:
        console.print(
            "\n[bold]drops[/bold]: " + ", ".join(f"{name} {count}" for name, count in run.drops.items())
        )
    print_losses(console, run.losses, traceable)
    if run.rows_lost:
        console.print(
            f"\n[bold]incomplete[/bold]: {run.rows_lost} rows were beyond what a probe keeps; sample less "
            "often, or fewer ports"
        )
    console.print(f"\nretransmitted packets: {run.retransmissions}; CNPs: {run.cnps}")
    if run.dropped_packet_ins:
        console.print(f"packet-ins that the controller did not take: {run.dropped_packet_ins}")
    print_packet_conservation(console, run.packet_conservation, run.absorbed)
    print_fidelity(console, run.fidelity)
    for failure in run.failures:
        console.print(f"\n[bold red]{escape(failure.sentence)}[/bold red]")
    for warning in run.all_warnings:
        console.print(f"\n[yellow]warning: {escape(warning)}[/yellow]")
    if run.lateness is not None:
        _print_lateness(console, run.lateness)


def _print_planes(console: Console, planes: list[PlaneResult]) -> None:
    columns = (
        "plane", "ECN\nmarks", "largest queue (B)", "at", "packets\naggregated", "tail\ndrops", "lost by\nfault",
        "corrupted",
    )  # fmt: skip
    rows = [
        (
            str(plane.plane),
            str(plane.ecn_marked_packets),
            _figure(plane.largest_queue_bytes),
            plane.largest_queue_port,
            str(plane.packets_aggregated),
            _figure(plane.tail_drops),
            _figure(plane.injected_losses),
            _figure(plane.corrupted_packets),
        )
        for plane in planes
    ]
    print_figures(console, "[bold]planes[/bold]", columns, rows)


def _figure(value: int | None) -> str:
    """Return a number as text, a dash where the target does not say."""
    return "-" if value is None else str(value)


def _print_int_path(console: Console, path: IntPath) -> None:
    table = Table(title=None, box=None, pad_edge=False)
    for column in ("hop", "switch", "rate", "queue (B)", "timestamp\n(ns mod 2^24)", "sent\n(B mod 2^27)"):
        table.add_column(column, justify="right")
    for hop in path.hops:
        table.add_row(
            str(hop.hop),
            hop.switch,
            format_rate(hop.rate_bps),
            f"{'≥ ' if hop.queue_bytes >= MOST_QUEUE_BYTES else ''}{hop.queue_bytes}",
            str(hop.timestamp_ns),
            str(hop.tx_bytes),
        )
    label = " (coarse: each switch has its own clock, in microseconds)" if path.coarse else ""
    console.print(f"\n[bold]INT[/bold] {path.source} → {path.destination}, plane {path.plane}{label}")
    console.print(table)
    if path.why_unknown:
        console.print(f"switches unknown: {path.why_unknown}")


def _print_lateness(console: Console, lateness: Lateness) -> None:
    share = lateness.percentile_99_ps / lateness.path_rtt_ps
    text = (
        f"lateness: 99th percentile {format_time(lateness.percentile_99_ps)} ({share:.0%} of the path's RTT, "
        f"{format_time(lateness.path_rtt_ps)}), largest {format_time(lateness.largest_ps)}"
    )
    if lateness.valid:
        console.print(text)
    else:
        console.print(
            f"[bold red]INVALID[/bold red] {text}; the bound is {LATENESS_BOUND:.0%} of the RTT: "
            f"a dilation of {lateness.sufficient_dilation:g} would do on this machine"
        )
