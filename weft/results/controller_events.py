"""Events of the controller, as a table on the terminal and on a report page."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from weft.controller.event_log import ControllerEvent
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS

_SHOWN_ON_TERMINAL = 40
_SHOWN_BY_LINK_EVENTS = ("link down", "link up", "programmed")
"""The table of links that failed or came back has these, too."""


_TABLE = ResultTable[ControllerEvent](
    "What the controller saw and did",
    (
        Column("at", "time_ps", form=format_time),
        Column("what", "kind", is_name=True),
        Column("link, switch or plane", lambda event: event.element or "-", is_name=True),
        Column("took", "duration_ps", form=format_time, missing="-"),
        Column("switches", lambda event: str(len(event.switches) or "-")),
        Column("entries", lambda event: str(event.entries or "-")),
        Column("", "detail", is_name=True),
    ),
    most=MOST_ROWS,
)


def _show(console: Console, events: Sequence[ControllerEvent]) -> None:
    """Print a table of the events that are not in the table of links' failures and repairs, if there are any."""
    others = [event for event in events if event.kind not in _SHOWN_BY_LINK_EVENTS]
    left_out = len(others) - _SHOWN_ON_TERMINAL
    heading = f"[bold]{_TABLE.title.lower()}[/bold]" + (f" (and {left_out} more)" if left_out > 0 else "")
    _TABLE.print(console, others[:_SHOWN_ON_TERMINAL], heading)


CONTROLLER_EVENTS = ResultKind(key="controller_events", model=ControllerEvent, tables=(_TABLE,), show=_show)
