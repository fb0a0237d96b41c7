"""Reads a routing matrix, tokens from each rank to each expert, from the scenario or a CSV or JSON file."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.cache import read_text
from weft.errors import BadInputError, translated
from weft.quantities.units import shown

MAX_CELLS = 1 << 22
MAX_FILE_BYTES = 1 << 26
MAX_TOKENS = 1 << 40
MOST_PATH = 1000


def given_matrix(given: Sequence[Sequence[int]] | Path) -> NDArray[np.int64]:
    """Return the matrix of shape (ranks, experts). Raises BadInputError with the file, row and column."""
    if not isinstance(given, Path):
        return _matrix(given, "")
    if len(str(given)) > MOST_PATH or "\0" in str(given):
        raise BadInputError(f"{shown(str(given))} is no path", valid=f"up to {MOST_PATH} characters, none of them null")
    try:
        text = read_text(given, MAX_FILE_BYTES)
    except UnicodeDecodeError as error:
        raise BadInputError(f"{given}: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise BadInputError(f"{given} cannot be read: {error.strerror or error}") from None
    rows = _json_rows(given, text) if given.suffix == ".json" else _csv_rows(given, text)
    return _matrix(rows, f"{given}: ")


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


def _matrix(rows: Sequence[Any], source: str) -> NDArray[np.int64]:
    columns = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    if not columns:
        raise BadInputError(f"{source}no matrix of tokens", valid="a row for each rank, a column for each expert")
    if len(rows) * columns > MAX_CELLS:
        raise BadInputError(f"{source}{len(rows)} rows of {columns}", valid=f"up to {MAX_CELLS} cells")
    for number, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != columns:
            size = f"{len(row)} cells" if isinstance(row, list) else shown(row)
            raise BadInputError(f"{source}row {number} has {size}", valid=f"{columns}, as row 0")
        for column, cell in enumerate(row):
            if type(cell) is not int or not 0 <= cell <= MAX_TOKENS:
                raise BadInputError(
                    f"{source}row {number}, column {column}: {shown(cell)}", valid="a number of tokens from 0"
                )
    return np.array(rows, np.int64)


def matrix_problem(matrix: NDArray[np.int64], ranks: int, experts: int, top_k: int, tokens: int) -> str | None:
    """Return why a matrix is invalid for ranks with `tokens` tokens each that choose `top_k` experts; None if valid."""
    if matrix.shape != (ranks, experts):
        rows, columns = matrix.shape
        return f"{rows} rows of {columns} (valid: {ranks} ranks that share {experts} experts)"
    for rank, expert in np.argwhere(matrix > tokens)[:1].tolist():
        return f"row {rank}, column {expert}: {matrix[rank, expert]} tokens (valid: 0 to {tokens}, which the rank has)"
    most = tokens * top_k
    for rank in np.flatnonzero(matrix.sum(axis=1) > most)[:1].tolist():
        return (
            f"row {rank}: {matrix[rank].sum()} tokens in all (valid: up to {most}, {top_k} experts for each of "
            f"{tokens} tokens)"
        )
    return None if matrix.any() else "no token goes anywhere (valid: at least one)"
