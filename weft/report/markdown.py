"""Tables as Markdown in which nothing of a run is markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from weft.results.report_parts import Cell, ReportTable
from weft.system.streams import printable
from weft.system.writing import written_whole


def markdown_table(table: ReportTable) -> str:
    """Return a table with at least one row; columns of numbers are aligned right."""
    return "\n".join(_lines(table))


def write_markdown_tables(names: Sequence[str], tables: Iterable[ReportTable], target: Path) -> Path:
    """Write tables under a heading of names, whole or not at all; returns the path.

    Raises:
        EnvironmentLacksError: the file cannot be written.
    """
    parts = [f"# {' and '.join(map(escaped, names))}"]
    for table in tables:
        parts.append(f"## {escaped(table.title)}")
        if table.note:
            parts.append(f"{escaped(table.note[0].upper() + table.note[1:])}.")
        if table.rows:
            parts.append(markdown_table(table))
    with written_whole(target) as partial:
        partial.write_text("\n\n".join(parts) + "\n", encoding="utf-8", newline="")
    return target


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
