"""Noisy parts that the search for them has found, and what was done about them."""

from __future__ import annotations

from weft.controller.noise.evidence import NoisyPart
from weft.quantities.readable import format_time
from weft.results.columns import Column, ResultTable
from weft.results.kinds import ResultKind
from weft.results.report_parts import MOST_ROWS


def _done(part: NoisyPart) -> str:
    if part.element:
        return f"{part.element} is out of use"
    return f"in use: {part.reason}"


_TABLE = ResultTable[NoisyPart](
    "Noisy parts",
    (
        Column("found at", "time_ps", form=format_time),
        Column("part", "part", is_name=True),
        Column("kind", "kind", is_name=True),
        Column("fault", "fault", is_name=True),
        Column("evidence", "evidence", is_name=True),
        Column("what was done", _done, is_name=True),
    ),
    "[bold]noisy parts[/bold]",
    most=MOST_ROWS,
)
NOISY_PARTS = ResultKind(key="noisy_parts", model=NoisyPart, tables=(_TABLE,))
