"""Tables as Markdown in which nothing of a run is markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.results.report_parts import Cell, ReportTable
from weft.system.streams import printable


def markdown_table(table: ReportTable) -> str:
    """Return a table with at least one row; columns of numbers are aligned right."""
    return "\n".join(_lines(table))


def _lines(table: ReportTable) -> Iterable[str]:
    yield _line(table.columns)
    numbers = [isinstance(cell, int | float) for cell in table.rows[0]]
    yield "|" + "|".join("---:" if is_number else "---" for is_number in numbers) + "|"
    for row in table.rows:
        yield _line(row)


def _line(cells: Sequence[Cell]) -> str:
    return "| " + " | ".join(escaped(cell) for cell in cells) + " |"


def escaped(cell: Any) -> str:
    """Return a cell in which nothing is markup, and that is on one line."""
    text = printable(str(cell))
    for letter in "\\`*_<>[]|&#":
        text = text.replace(letter, f"\\{letter}")
    return text
