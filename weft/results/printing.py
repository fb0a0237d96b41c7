"""A run's results as tables on the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from rich.console import Console
from rich.markup import escape

from weft.quantities.readable import format_time
from weft.results.fast_forward import print_fast_forward
from weft.results.fidelity import print_fidelity
from weft.results.limits import Limit, sentences
from weft.results.losses import Traceable, print_losses
from weft.results.model import LATENESS_BOUND, OF_RUN, Lateness, Results
from weft.results.packet_conservation import PACKET_CONSERVATION
from weft.system.consoles import make_console


def show_run(run: Results, as_json: bool, traceable: Traceable | None = None, limits: Sequence[Limit] = ()) -> None:
    """Print a run on standard output: as JSON, or as tables."""
    if as_json:
        print(json.dumps(run.as_dict(), indent=1))
    else:
        print_run(make_console(), run, traceable, limits)


class _InvalidConsole:
    """A console that marks times, rates and counts of a run that served events too late."""

    _MARK = "[bold red]INVALID[/bold red]"

    def __init__(self, console: Console) -> None:
        self._console = console

    def print(self, what: Any = "", *arguments: Any, **options: Any) -> None:
        """Print a table unchanged, since its heading has the mark, and mark every line of text."""
        if isinstance(what, str) and what.strip() and self._MARK not in what:
            start = len(what) - len(what.lstrip("\n"))
            what = f"{what[:start]}{self._MARK} {what[start:]}"
        self._console.print(what, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._console, name)


def print_run(console: Console, run: Results, traceable: Traceable | None = None, limits: Sequence[Limit] = ()) -> None:
    """Print all tables of a run; if its times mean nothing, the first line says so, and all others bear a mark.

    Where packets were lost in switches, commands follow that show one, if it is known what to trace. `limits` are what
    limited the run, if that is to be printed.
    """
    if run.lateness is not None and not run.lateness.valid:
        console = cast("Console", _InvalidConsole(console))
        console.print("the machine served events too late: times, rates and queues below do not hold")
    for kind in (*run.kinds, *OF_RUN):
        if kind is not PACKET_CONSERVATION and (found := run.of(kind)):
            kind.print(console, found)
    print_losses(console, run.losses, traceable)
    if run.rows_lost:
        console.print(
            f"\n[bold]incomplete[/bold]: {run.rows_lost} rows were beyond what a probe keeps; sample less "
            "often, or fewer ports"
        )
    console.print(f"\nretransmitted packets: {run.retransmissions}; CNPs: {run.cnps}")
    if run.dropped_packet_ins:
        console.print(f"packet-ins that the controller did not take: {run.dropped_packet_ins}")
    # The account stands below the packets of which it has the sums.
    if rows := run.of(PACKET_CONSERVATION):
        PACKET_CONSERVATION.print(console, rows)
    print_fidelity(console, run.fidelity)
    print_fast_forward(console, run.fast_forward)
    print_limits(console, limits)
    for failure in run.failures:
        console.print(f"\n[bold red]{escape(failure.sentence)}[/bold red]")
    for warning in run.all_warnings:
        console.print(f"\n[yellow]warning: {escape(warning)}[/yellow]")
    if run.lateness is not None:
        _print_lateness(console, run.lateness)


def print_limits(console: Console, limits: Sequence[Limit]) -> None:
    """Print what limited a run, a line for each, the first to look at first."""
    for line in sentences(limits):
        console.print(escape(line), soft_wrap=True)


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
