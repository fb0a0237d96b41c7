"""Reads a matrix of whole numbers from a scenario's lists of lists, or from a CSV or JSON file."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.cache import read_text
from weft.errors import BadInputError, InvalidValueError, translated
from weft.quantities.arrays import Integers
from weft.quantities.units import shown

MAX_CELLS = 1 << 22
MAX_FILE_BYTES = 1 << 26
MOST_PATH = 1000


@dataclass(frozen=True)
class MatrixForm:
    """The form of a matrix.

    Attributes:
        what: of what it is, in errors: "tokens".
        axes: what rows and columns stand for, in errors.
        read_cell: returns a cell's number, given what the file or the scenario has: a number, or text without blanks
            around it. Raises ValueError.
    """

    what: str
    axes: str
    read_cell: Callable[[Any], int]

    def read(self, given: Sequence[Sequence[Any]] | Path) -> Integers:
        """Return the matrix of a scenario or a file. Raises BadInputError with the file, row and column."""
        if not isinstance(given, Path):
            return self._matrix(given, "")
        if len(str(given)) > MOST_PATH or "\0" in str(given):
            raise BadInputError(
                f"{shown(str(given))} is no path", valid=f"up to {MOST_PATH} characters, none of them null"
            )
        try:
            text = read_text(given, MAX_FILE_BYTES)
        except UnicodeDecodeError as error:
            raise BadInputError(f"{given}: byte {error.start} is not UTF-8") from None
        except OSError as error:
            raise BadInputError(f"{given} cannot be read: {error.strerror or error}") from None
        rows = _json_rows(given, text) if given.suffix == ".json" else _csv_rows(given, text)
        return self._matrix(rows, f"{given}: ")

    def _matrix(self, rows: Sequence[Any], source: str) -> Integers:
        columns = len(rows[0]) if rows and isinstance(rows[0], list) else 0
        if not columns:
            raise BadInputError(f"{source}no matrix of {self.what}", valid=self.axes)
        if len(rows) * columns > MAX_CELLS:
            raise BadInputError(f"{source}{len(rows)} rows of {columns}", valid=f"up to {MAX_CELLS} cells")
        found = np.zeros((len(rows), columns), np.int64)
        for number, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != columns:
                size = f"{len(row)} cells" if isinstance(row, list) else shown(row)
                raise BadInputError(f"{source}row {number} has {size}", valid=f"{columns}, as row 0")
            for column, cell in enumerate(row):
                with translated(ValueError, _BadCell, f"{source}row {number}, column {column}"):
                    found[number, column] = self.read_cell(cell)
        return found


class _BadCell(BadInputError):
    """A cell of a matrix, whose place is part of the problem: the key is the place of the whole."""

    def __init__(self, place: str, error: ValueError) -> None:
        problem, valid = (error.problem, error.valid) if isinstance(error, InvalidValueError) else (str(error), "")
        super().__init__(f"{place}: {problem}", valid=valid)


def _json_rows(path: Path, text: str) -> list[Any]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        # A number with more digits than Python converts raises ValueError, not JSONDecodeError.
        raise BadInputError(error, place=path, valid="a list of rows of JSON") from None
    if not isinstance(rows, list):
        raise BadInputError(f"{shown(rows)}", place=path, valid="a list of rows")
    return rows


def _csv_rows(path: Path, text: str) -> list[list[Any]]:
    """Return the cells of all lines except blank lines and comments, which begin with #."""
    lines = (line for line in text.removeprefix("\ufeff").split("\n") if line.strip() and line[0] != "#")
    with translated(csv.Error, BadInputError, place=path):
        return [[_number(cell) for cell in row] for row in csv.reader(lines)]


def _number(cell: str) -> int | str:
    cell = cell.strip()
    return int(cell) if cell.isascii() and cell.isdigit() and len(cell) < 20 else cell
