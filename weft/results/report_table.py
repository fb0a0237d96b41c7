"""A table of a page: cells as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float
MOST_ROWS = 50


@dataclass
class ReportTable:
    """A heading, columns and rows; `note` says what is left out, or what a column means."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def shown_of(shown: int, of: int, which: str) -> str:
    """Return a note on rows that are left out, "" if there are none."""
    return f"{shown} of {of}: {which}" if shown < of else ""
