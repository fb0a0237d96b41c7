"""Changes of circuits' configurations in results, on the terminal and on pages."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weft.controller.circuits import CircuitChange
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind


def _drained(change: CircuitChange) -> str:
    return "no" if not change.drain else "after other routes" if change.rerouted else "waited"


def _since(title: str, begin: str, end: str) -> Column[CircuitChange]:
    def value(change: CircuitChange) -> int | None:
        a, b = getattr(change, begin), getattr(change, end)
        return None if a is None or b is None else b - a

    return Column(title, value, form=format_time, missing="-")


_TABLE = ResultTable[CircuitChange](
    "Changes of circuits",
    (
        Column("configuration", "configuration"),
        Column("", "outcome"),
        Column("drained", _drained),
        Column("began", "began_ps", form=format_time),
        _since("until\ndark", "began_ps", "dark_ps"),
        _since("until new\ncircuits", "dark_ps", "joined_ps"),
        _since("tables\nafter", "dark_ps", "programmed_ps"),
        Column("circuits", lambda each: f"-{each.removed} +{each.added}"),
        Column("lost", lambda each: str(each.lost_packets)),
    ),
    "[bold]changes of circuits[/bold] (losses in packets)",
)


def _show(console: Console, changes: Sequence[CircuitChange]) -> None:
    _TABLE.print(console, changes)
    for each in changes:
        if each.route_cycle:
            problem = f"with circuits {each.configuration}, lossless classes may deadlock: {each.route_cycle}"
            console.print(f"[yellow]{problem}[/yellow]")


CIRCUIT_CHANGES = ResultKind(
    key="circuit_changes",
    model=CircuitChange,
    meaning="One for each change of the circuits' configuration, scheduled or between items of the traffic.",
    tables=(_TABLE,),
    show=_show,
    order=90,
    name="configuration",
    labels=("outcome",),
)
