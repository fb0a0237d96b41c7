"""Messages that ranks have sent on for other ranks of their hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_size, format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS, ReportPart
from weft.topologies import FabricSpec
from weft.traffic.host_stats import HostStats

_MOST_SHOWN = 8


@dataclass(frozen=True)
class RelayResult(PlainData):
    """One rank that has sent on messages for others of its host, over the whole run."""

    relay: str
    """The rank, by its endpoint's name."""
    messages: int
    """Sent on, and acknowledged by their receivers."""
    relayed_bytes: int
    """Data in them."""
    inside_ps: float
    """Mean time from the post of a message until the relay had all of it."""
    between_ps: float
    """Mean time from then until its receiver had acknowledged it."""


def relay_results(endpoints: Sequence[HostStats]) -> list[RelayResult]:
    """Return every rank that has sent on something, in the fabric's order."""
    found = []
    for each in endpoints:
        inside = each["scale_up"]
        if inside is None or not (messages := inside["relayed_messages"]):
            continue
        found.append(
            RelayResult(
                relay=each["name"],
                messages=messages,
                relayed_bytes=inside["relayed_bytes"],
                inside_ps=inside["relayed_inside_ps"] / messages,
                between_ps=inside["relayed_between_ps"] / messages,
            )
        )
    return found


_TABLE = ResultTable[RelayResult](
    "Relays between rails",
    (
        Column("relay", "relay", is_name=True),
        Column("messages", "messages"),
        Column("data", "relayed_bytes", form=format_size),
        Column("inside the\nhost (mean)", "inside_ps", form=format_time),
        Column("between\nhosts (mean)", "between_ps", form=format_time),
    ),
    most=MOST_ROWS,
    which="those that sent on most",
)


def _busiest_first(results: Sequence[RelayResult]) -> list[RelayResult]:
    return sorted(results, key=lambda each: -each.relayed_bytes)


def _show(console: Console, results: Sequence[RelayResult]) -> None:
    busiest = _busiest_first(results)[:_MOST_SHOWN]
    more = f" ({len(busiest)} of {len(results)})" if len(busiest) < len(results) else ""
    _TABLE.print(console, busiest, f"[bold]relays between rails{more}[/bold]")


def _report(results: Sequence[RelayResult], _: FabricSpec) -> Iterator[ReportPart]:
    yield _TABLE.part(_busiest_first(results))


RELAYS = ResultKind(key="relays", model=RelayResult, tables=(_TABLE,), show=_show, report=_report)
