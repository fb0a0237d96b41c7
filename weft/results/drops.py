"""Packets dropped: by cause on the terminal and in sweeps, by place and cause on pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS

if TYPE_CHECKING:
    from weft.results.losses import LossResult
    from weft.results.model import Results

_EVERYWHERE = "all"
_RECORDED = ("queue ", "link ", "switch ", "nic ")
"""Causes with a row per packet in the table `drops`, where the run has recorded it."""


@dataclass(frozen=True)
class DropResult(PlainData):
    """Packets dropped at one place for one reason."""

    place: str
    """A port, switch or host; `all` if it is unknown."""
    reason: str
    """As in `drops` of results.json."""
    packets: int
    """How many."""
    first_ps: int | None = None
    """Emulated time of the first; None if the run has not recorded it."""


def drops_by_reason(results: Results) -> list[DropResult]:
    """Return the drops of the whole run by reason."""
    return [DropResult(_EVERYWHERE, reason, packets) for reason, packets in results.drops.items()]


def drops_by_place(results: Results, recorded: Sequence[DropResult] | None) -> Iterator[DropResult]:
    """Yield drops with their places where these are known, and at most `MOST_ROWS` from each source.

    `recorded` are the drops of the table `drops` by place and reason, None where the run has not recorded it.
    """
    if recorded is not None:
        yield from _most(recorded)
    # Drops that were recorded one by one are in the counters of queues, links, switches and NICs, too.
    left_out = () if recorded is None else _RECORDED
    placed = [each for each in results.losses if not each.reason.startswith(left_out)]
    reasons = {each.reason for each in placed}
    for each in drops_by_reason(results):
        if not each.reason.startswith(left_out) and each.reason not in reasons:
            yield each
    yield from _most([_of_loss(each) for each in placed])


def _of_loss(loss: LossResult) -> DropResult:
    return DropResult(loss.place, loss.reason, loss.packets)


def _most(drops: Sequence[DropResult]) -> list[DropResult]:
    return sorted(drops, key=lambda each: -each.packets)[:MOST_ROWS]


def _show(console: Console, drops: Sequence[DropResult]) -> None:
    counts = ", ".join(f"{each.reason} {each.packets}" for each in drops)
    console.print(f"\n[bold]drops[/bold]: {counts}")


_TABLE = ResultTable[DropResult](
    "Drops",
    (
        Column("place", "place"),
        Column("reason", "reason"),
        Column("packets", "packets", sweep={"title": "drops"}),
        Column("first at", "first_ps", form=format_time),
    ),
)
DROPS = ResultKind(key="drops", model=DropResult, tables=(_TABLE,), show=_show, rows=drops_by_reason)
