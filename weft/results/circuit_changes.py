"""Changes of circuits' configurations in results, on the terminal and on pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from weft.controller.circuits import CircuitChange
from weft.quantities.readable import format_time
from weft.results.figure_tables import print_figures
from weft.results.kinds import ResultKind
from weft.results.report_parts import Cell, ReportPart, ReportTable
from weft.topologies import FabricSpec

_COLUMNS = (
    "configuration", "", "drained", "began", "until\ndark", "until new\ncircuits", "tables\nafter", "circuits",
    "lost",
)  # fmt: skip
_TITLE = "changes of circuits"


def _row(change: CircuitChange) -> tuple[str, ...]:
    drained = "no" if not change.drain else "after other routes" if change.rerouted else "waited"
    times = (
        (change.began_ps, change.dark_ps),
        (change.dark_ps, change.joined_ps),
        (change.dark_ps, change.programmed_ps),
    )
    return (
        change.configuration,
        change.outcome,
        drained,
        format_time(change.began_ps),
        *("-" if a is None or b is None else format_time(b - a) for a, b in times),
        f"-{change.removed} +{change.added}",
        str(change.lost_packets),
    )


def _show(console: Console, changes: Sequence[CircuitChange]) -> None:
    print_figures(
        console, f"[bold]{_TITLE}[/bold] (losses in packets)", _COLUMNS, [_row(each) for each in changes]
    )
    for each in changes:
        if each.route_cycle:
            problem = f"with circuits {each.configuration}, lossless classes may deadlock: {each.route_cycle}"
            console.print(f"[yellow]{problem}[/yellow]")


def _report(changes: Sequence[CircuitChange], _fabric: FabricSpec) -> Iterator[ReportPart]:
    if changes:
        rows: list[list[Cell]] = [list(_row(each)) for each in changes]
        yield ReportTable(_TITLE.capitalize(), [each.replace("\n", " ") for each in _COLUMNS], rows)


CIRCUIT_CHANGES = ResultKind(
    key="circuit_changes",
    model=CircuitChange,
    meaning="Of each change of the circuits' configuration, scheduled or between items of the traffic.",
    show=_show,
    order=90,
    report=_report,
    name="configuration",
    labels=("outcome",),
)
