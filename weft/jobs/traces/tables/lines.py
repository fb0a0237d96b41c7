"""Reads lines of text files and cells of CSV files, with their places for errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weft.cache import read_bytes
from weft.errors import InvalidValueError
from weft.jobs.traces.errors import TraceError
from weft.quantities.units import shown

MAX_FILE_BYTES = 1 << 30
MAX_ROWS = 4_000_000
_HEAD_BYTES = 4096
_Value = TypeVar("_Value")


def lines_of(path: Path) -> io.TextIOWrapper:
    """Return the lines of a file; invalid UTF-8 becomes replacement characters. Raises OSError."""
    return io.TextIOWrapper(io.BytesIO(read_bytes(path, MAX_FILE_BYTES)), "utf-8-sig", "replace", newline="")


def first_lines(path: Path) -> list[str]:
    """Return the first lines of a regular file, and [] for anything else."""
    if not path.is_file():
        return []
    with open(path, "rb") as file:
        return file.read(_HEAD_BYTES).decode("utf-8-sig", "replace").splitlines()


@dataclass(frozen=True)
class Row:
    """A line of a CSV file: its non-empty cells by column."""

    path: Path
    line: int
    cells: dict[str, str]

    @property
    def place(self) -> str:
        """File and line, as shown in messages."""
        return f"{self.path}, line {self.line}"

    def read(self, column: str, reader: Callable[[str], _Value], default: _Value | None = None) -> _Value:
        """Return a cell converted by `reader`. Raises TraceError if that fails, or if it is empty without a default."""
        text = self.cells.get(column)
        if text is None:
            if default is None:
                raise TraceError(f"{column} is empty", place=self.place)
            return default
        try:
            return reader(text)
        except ValueError as error:
            raise TraceError(error, place=f"{self.place}: {column}") from None


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if len(text) <= 20 and text.isascii() and text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise InvalidValueError(f"{shown(text)}", valid=f"{least} to {most}")

    return read


def header_of(lines: Sequence[str]) -> list[str]:
    """Return the column names in a CSV file's first line; [] if it is not CSV."""
    try:
        return [name.strip() for name in next(csv.reader(lines[:1]), [])]
    except csv.Error:
        return []


def csv_rows(path: Path, needed: Sequence[str], optional: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a CSV file with a header; empty lines are skipped.

    Raises TraceError for missing, unknown or duplicate columns, and for lines with a different number of cells.
    """
    reader = csv.reader(lines_of(path))
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_columns(f"{path}, line 1", names, needed, optional)
        count = 0
        for cells in reader:
            if not cells:
                continue
            place = f"{path}, line {reader.line_num}"
            if len(cells) != len(names):
                raise TraceError(f"{len(cells)} cells", place=place, valid=f"{len(names)}, as line 1")
            count += 1
            if count > MAX_ROWS:
                raise TraceError(f"more than {MAX_ROWS} rows", place=place)
            stripped = (cell.strip() for cell in cells)
            yield Row(
                path,
                reader.line_num,
                {name: cell for name, cell in zip(names, stripped, strict=True) if cell},
            )
    except csv.Error as error:
        raise TraceError(error, place=f"{path}, line {reader.line_num}") from None


def _check_columns(place: str, names: list[str], needed: Sequence[str], optional: Sequence[str]) -> None:
    valid = f"{', '.join(needed)}; optional: {', '.join(optional)}"
    for name in needed:
        if name not in names:
            raise TraceError(f"column {name!r} is missing", place=place, valid=valid)
    for name in names:
        if name not in (*needed, *optional):
            raise TraceError(f"unknown column {shown(name)}", place=place, valid=valid)
    if len(set(names)) < len(names):
        raise TraceError("two columns have the same name", place=place)
