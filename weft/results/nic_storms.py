"""NICs that asked for pauses without end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.quantities.plain_data import PlainData
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind


@dataclass
class NicStormResult(PlainData):
    """A NIC that was broken: all its ports asked by PFC for pauses without end. Times are of the run's clock."""

    host: str
    """The host."""
    classes: list[int]
    """Classes that it paused."""
    at_ps: int | None
    """When it was to begin, counted from when the fabric was up; null: from the start."""
    until_ps: int | None
    """When it was to stop, counted likewise; null: never."""
    began_ps: int | None = None
    """When it began; null: not in this run."""
    ended_ps: int | None = None
    """When it stopped; null: not in this run."""


def storm_warnings(storms: Iterable[NicStormResult]) -> Iterator[str]:
    """Yield a sentence for each storm that began."""
    for storm in storms:
        if storm.began_ps is None:
            continue
        end = "without end" if storm.ended_ps is None else f"until {format_time(storm.ended_ps)}"
        classes = " and ".join(map(str, storm.classes))
        yield (
            f"the NIC of {storm.host} asked for pauses of class {classes} from {format_time(storm.began_ps)} on, {end}"
        )


_TABLE = ResultTable[NicStormResult](
    "NICs that paused without end",
    (
        Column("host", "host", is_name=True),
        Column("classes", lambda storm: ", ".join(map(str, storm.classes))),
        Column("began at", "began_ps", form=format_time, missing="not in this run"),
        Column("ended at", "ended_ps", form=format_time, missing="never"),
    ),
    "[bold]NICs that paused without end[/bold]",
)
NIC_STORMS = ResultKind(key="nic_storms", model=NicStormResult, tables=(_TABLE,))
