"""Outages of the network between controller and switches in results."""

from __future__ import annotations

from dataclasses import dataclass

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind


@dataclass
class ManagementOutage(PlainData):
    """A time in which controller and switches did not reach each other, counted from when the fabric was up."""

    began_ps: int
    """When it began."""
    ended_ps: int
    """When the network was back."""
    messages_held: int = 0
    """Messages of controller and switches that waited for its end: requests, answers, notifications of links."""


_TABLE = ResultTable[ManagementOutage](
    "Outages of the management network",
    (
        Column("began", "began_ps", form=format_time),
        Column("ended", "ended_ps", form=format_time),
        Column("messages held", "messages_held"),
    ),
)
MANAGEMENT_OUTAGES = ResultKind(key="management_outages", model=ManagementOutage, tables=(_TABLE,))
