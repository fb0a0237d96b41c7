"""Training with a parameter server as a kind of result: its tables on the terminal, and what sweeps compare."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weft.results.critical_paths import print_critical_path
from weft.results.figure_tables import print_figures
from weft.results.kinds import MeasuredColumn, ResultKind
from weft.results.operation_files import OperationFile
from weft.results.parameter_server_figures import report_parameter_servers
from weft.results.parameter_server_model import (
    HistogramResult,
    ParameterServerResult,
    convergence_cells,
    part_names,
    problems_of,
)

_PS_PER_US = 1e6


def print_parameter_servers(console: Console, results: Sequence[ParameterServerResult]) -> None:
    """Print a row for each, then the parts of steps, how old weights were, the loss, and each critical path."""
    console.print("\n[bold]parameter servers[/bold] (time is emulated; mean of workers and steps)")
    parts = part_names(results)
    print_figures(
        console,
        "what a step consists of, in µs",
        ["mode", "workers", "servers", "bytes", "steps", "step", *parts],
        [
            [
                each.mode,
                str(each.workers),
                str(each.servers),
                str(each.parameter_bytes),
                str(each.steps),
                f"{each.step_ps / _PS_PER_US:.1f}",
                *(f"{each.part_us(name):.1f}" if name in each.parts_ps else "" for name in parts),
            ]
            for each in results
        ],
        names=["mode"],
    )
    print_figures(
        console,
        "gradients per second, of all workers",
        ["mode", "over the run", "while at work"],
        [
            [each.mode, f"{each.gradients_per_s:,.0f}", f"{each.gradients_per_s_at_work:,.0f}"]
            for each in results
        ],
        names=["mode"],
    )
    print_figures(
        console,
        "weights: steps of the slowest worker that they lacked, updates before that of their gradient; servers' links",
        [
            "mode",
            "mean lag",
            "largest",
            "mean staleness",
            "largest",
            "links (%)",
            "retransmitted",
        ],
        [
            [
                each.mode,
                *_shown_histogram(each.clock_lags),
                *_shown_histogram(each.update_staleness),
                f"{100 * sum(each.link_share) / each.servers:.1f}",
                str(each.retransmissions),
            ]
            for each in results
            if each.servers
        ],
        names=["mode"],
    )
    print_figures(
        console,
        "loss",
        ["mode", "at first", "in the end", "recognised (%)", "target", "at step", "at (µs)"],
        [
            [each.mode, *map(str, convergence_cells(each.convergence))]
            for each in results
            if each.convergence is not None
        ],
        names=["mode"],
    )
    for each in results:
        console.print(f"\n[bold]{each.mode}[/bold]: {each.time_ps / _PS_PER_US:,.3f} µs in all")
        print_critical_path(console, each.critical_path)


def _shown_histogram(histogram: HistogramResult | None) -> tuple[str, str]:
    assert histogram is not None, "of servers there are some"
    return f"{histogram.mean:.2f}", str(histogram.largest)


PARAMETER_SERVERS = ResultKind(
    key="parameter_servers",
    meaning="Of each item of training with a parameter server.",
    model=ParameterServerResult,
    show=print_parameter_servers,
    order=7,
    report=report_parameter_servers,
    flow_file=OperationFile("parameter-server"),
    problems=problems_of,
    name="mode",
    labels=("mode", "servers", "workers"),
    measured=(
        MeasuredColumn("step", "µs", 1, "step_ps", _PS_PER_US),
        MeasuredColumn("gradients", "/s", 0, "gradients_per_s"),
        MeasuredColumn("mean lag", "", 2, "clock_lags.mean"),
        MeasuredColumn("target loss", "µs", 1, "convergence.target_ps", _PS_PER_US),
    ),
)
