"""What the controller saw and did, as a table on the terminal and on a report page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weft.controller.event_log import ControllerEvent
from weft.quantities.readable import format_time
from weft.results.figure_tables import print_figures
from weft.results.report_parts import MOST_ROWS, Cell, ReportTable, shown_of

_COLUMNS = ("at", "what", "link, switch or plane", "took", "switches", "entries", "")
_TITLE = "What the controller saw and did"
_SHOWN_ON_TERMINAL = 40
_SHOWN_BY_LINK_EVENTS = ("link down", "link up", "programmed")
"""The table of links that failed or came back has these, too."""


def event_row(event: ControllerEvent) -> tuple[str, ...]:
    """Return an event's cells, for people."""
    return (
        format_time(event.time_ps),
        event.kind,
        event.element or "-",
        "-" if event.duration_ps is None else format_time(event.duration_ps),
        str(len(event.switches)) if event.switches else "-",
        str(event.entries) if event.entries else "-",
        event.detail,
    )


def print_controller_events(console: Console, events: Sequence[ControllerEvent]) -> None:
    """Print a table of what is not in that of links' failures and repairs, if there is anything."""
    others = [event for event in events if event.kind not in _SHOWN_BY_LINK_EVENTS]
    left_out = len(others) - _SHOWN_ON_TERMINAL
    title = f"[bold]{_TITLE.lower()}[/bold]" + (f" (and {left_out} more)" if left_out > 0 else "")
    rows = [event_row(event) for event in others[:_SHOWN_ON_TERMINAL]]
    print_figures(console, title, _COLUMNS, rows, names=(_COLUMNS[1], _COLUMNS[2], _COLUMNS[-1]))


def controller_events_table(events: Sequence[ControllerEvent]) -> ReportTable | None:
    """Return the table of a page, None if there is nothing."""
    if not events:
        return None
    rows: list[list[Cell]] = [list(event_row(event)) for event in events[:MOST_ROWS]]
    return ReportTable(_TITLE, list(_COLUMNS), rows, shown_of(len(rows), len(events), "the first"))
