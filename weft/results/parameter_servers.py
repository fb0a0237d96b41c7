"""Training with a parameter server as a kind of result: its tables on the terminal, and what sweeps compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console

from weft.quantities.units import PS_PER_US
from weft.results.clearances import clearance_columns, print_clearances
from weft.results.columns import Column, ResultTable, Value
from weft.results.critical_paths import print_critical_path
from weft.results.kinds import ResultKind
from weft.results.operation_files import OperationFile
from weft.results.parameter_server_figures import figures_of
from weft.results.parameter_server_model import (
    ConvergenceResult,
    ParameterServerResult,
    part_names,
    problems_of,
)
from weft.results.report_parts import ReportPart
from weft.topologies import FabricSpec


def _column(title: str, value: Value[ParameterServerResult], **options: Any) -> Column[ParameterServerResult]:
    return Column(title, value, **options)


def _of_convergence(
    title: str, show: Callable[[ConvergenceResult], str], **options: Any
) -> Column[ParameterServerResult]:
    return Column(title, "convergence", form=show, **options)


def _reached(found: ConvergenceResult) -> bool:
    return found.target_steps is not None and found.target_ps is not None


_MODE = _column("mode", "mode", is_name=True)
_OF_STEPS = (
    _MODE,
    _column("workers", "workers"),
    _column("servers", "servers"),
    _column("bytes", "parameter_bytes", page={"title": "parameters", "unit": "B"}),
    _column("steps", "steps", page=None),
    _column(
        "step",
        "step_ps",
        scale=PS_PER_US,
        digits=1,
        page={"unit": "µs", "digits": 3},
        sweep={"unit": "µs"},
    ),
)
_OF_RATES = (
    _column(
        "over the run",
        "gradients_per_s",
        digits=0,
        terminal={"form": "{:,.0f}".format},
        page={"title": "gradients/s"},
        sweep={"title": "gradients", "unit": "/s", "more_is_better": True},
    ),
    _column(
        "while at work",
        "gradients_per_s_at_work",
        digits=0,
        terminal={"form": "{:,.0f}".format},
        page={"title": "at work (/s)"},
    ),
)
_OF_WEIGHTS = (
    _column("mean lag", "clock_lags.mean", digits=2, page=None, sweep={}),
    _column("largest", "clock_lags.largest", page=None),
    _column("mean staleness", "update_staleness.mean", digits=2, page=None),
    _column("largest", "update_staleness.largest", page=None),
    _column("links", lambda each: 100 * sum(each.link_share) / each.servers, unit="%", digits=1, page=None),
)
_OF_LOSSES = (
    _of_convergence("at first", lambda found: f"{found.losses[0]:.3f}", page={"title": "loss at first"}),
    _of_convergence("in the end", lambda found: "diverged" if found.diverged else f"{found.losses[-1]:.3f}"),
    _of_convergence("recognised", lambda found: f"{100 * found.accuracy:.1f}", unit="%"),
    _of_convergence("target", lambda found: f"{found.target_loss:g}", page={"title": "target loss"}),
    _of_convergence("at step", lambda found: str(found.target_steps) if _reached(found) else "not reached"),
    _of_convergence(
        "at",
        lambda found: f"{(found.target_ps or 0) / PS_PER_US:.1f}" if _reached(found) else "",
        unit="µs",
        sweep={"title": "target loss", "value": "convergence.target_ps", "scale": PS_PER_US, "digits": 1},
    ),
)
_RETRANSMITTED = _column("retransmitted", "retransmissions", page={"title": "retransmitted packets"})
_TABLE = ResultTable(
    "Parameter servers",
    (
        *_OF_STEPS,
        *_OF_RATES,
        *_OF_WEIGHTS,
        *_OF_LOSSES,
        *clearance_columns(ParameterServerResult),
        _RETRANSMITTED,
    ),
    note="step: mean of workers and steps; at work: the sum of workers' rates, each up to the end of its last step",
)


def _part(name: str) -> Column[ParameterServerResult]:
    return _column(name, lambda each: each.part_us(name) if name in each.parts_ps else None, digits=1)


def print_parameter_servers(console: Console, results: Sequence[ParameterServerResult]) -> None:
    """Print a row for each, then the parts of steps, how old weights were, the loss, and each critical path."""
    console.print("\n[bold]parameter servers[/bold] (time is emulated; mean of workers and steps)")
    parts = map(_part, part_names(results))
    with_servers = [each for each in results if each.servers]
    trained = [each for each in results if each.convergence is not None]
    for heading, columns, rows in (
        ("what a step consists of, in µs", (*_OF_STEPS, *parts), results),
        ("gradients per second, of all workers", (_MODE, *_OF_RATES), results),
        (
            "weights: steps of the slowest worker that they lacked, updates before their own gradient's; "
            "servers' links",
            (_MODE, *_OF_WEIGHTS, _RETRANSMITTED),
            with_servers,
        ),
        ("loss", (_MODE, *_OF_LOSSES), trained),
    ):
        ResultTable("", columns, heading).print(console, rows)
    for each in results:
        console.print(f"\n[bold]{each.mode}[/bold]: {each.time_ps / PS_PER_US:,.3f} µs in all")
        print_clearances(console, each)
        print_critical_path(console, each.critical_path)


def report_parameter_servers(results: Sequence[ParameterServerResult], _: FabricSpec) -> Iterator[ReportPart]:
    """Yield the figures, and a table."""
    yield from figures_of(results)
    yield _TABLE.part(results)


PARAMETER_SERVERS = ResultKind(
    key="parameter_servers",
    meaning="One for each item of training with a parameter server.",
    model=ParameterServerResult,
    show=print_parameter_servers,
    order=7,
    report=report_parameter_servers,
    flow_file=OperationFile("parameter-server"),
    problems=problems_of,
    name="mode",
    labels=("mode", "servers", "workers"),
    tables=(_TABLE,),
)
