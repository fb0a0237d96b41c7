"""Reads the tables of a run, and checks every cell against its column's schema."""

from __future__ import annotations

import csv
import importlib.util
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from weft.cache import collector_paused
from weft.errors import BadInputError, EnvironmentLacksError
from weft.hints import did_you_mean, install_extra
from weft.quantities.json_problems import quoted
from weft.recording.schema import LARGEST, TABLES, ColumnSchema, Holds, TableSchema
from weft.recording.tables import Column, Names, Table

_LONGEST_QUOTED = 40
_DIGITS = re.compile("-?[0-9]{1,4000}")


@dataclass(frozen=True)
class SavedTable:
    """A table and the file that it comes from."""

    path: Path
    columns: Table

    def refuse(self, row: int, column: str, what: str) -> NoReturn:
        """Raise BadInputError about the cell in a row, counted from 0; the file's line is named if it has any."""
        place = f"{self.path}:{_line_of_row(self.path, row)}" if self.path.suffix == ".csv" else self.path
        of_row = "" if self.path.suffix == ".csv" else f" of row {row + 1}"
        raise BadInputError(f"{column}{of_row}: {what}", place=place)


def read_table(directory: Path, name: str) -> SavedTable | None:
    """Read a table of `weft.recording.schema` from a run's directory, whichever its format; None if it is not there.

    Columns that the schema does not know are left out.

    Raises:
        BadInputError: the file cannot be read, lacks a column, or a cell is not what it must be; says which line.
        EnvironmentLacksError: it is Parquet, and pyarrow is missing.
    """
    return read_table_of(TABLES[name], directory, name)


def read_table_of(schema: TableSchema, directory: Path, name: str) -> SavedTable | None:
    """As `read_table`, of another schema."""
    for suffix, read in ((".parquet", _read_parquet), (".csv", _read_csv)):
        path = directory / (name + suffix)
        if path.exists():
            table = SavedTable(path, read(path, schema))
            _check_numbers(table, schema)
            return table
    return None


def read_text(path: Path) -> str:
    """Return a file's text; BadInputError: it cannot be read, or is no UTF-8."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInputError(f"{path}:{line}: is not UTF-8 text (byte 0x{data[error.start]:02x})") from None


def read_bytes(path: Path) -> bytes:
    """Return a file's content; BadInputError: it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", place=path) from None


def _read_csv(path: Path, schema: TableSchema) -> Table:
    text = read_text(path)
    texts: Mapping[str, Sequence[str]] | None = _plain_columns(text)
    if texts is None:
        texts = _columns(path, text, schema)
    else:
        _require_columns(path, [*texts], schema)
    return {
        column.name: (
            _integers(path, column, texts[column.name])
            if column.holds is Holds.NUMBER
            else Names.of(texts[column.name])
        )
        for column in schema.columns
    }


def _plain_columns(text: str) -> dict[str, list[str]] | None:
    """Return the columns of a file without quotes and with equally long rows, as Weft writes most; None of others.

    It takes a fraction of the time of a reader that looks at each row.
    """
    header = text.partition("\n")[0].split(",")
    if '"' in text or "\r" in text or not text.endswith("\n") or len(set(header)) < len(header):
        return None
    data = np.frombuffer(text.encode(), np.uint8)
    separators = data[(data == ord(",")) | (data == ord("\n"))]
    ends = separators == ord("\n")
    if len(ends) % len(header):
        return None
    rows = ends.reshape(-1, len(header))
    if rows[:, :-1].any() or not rows[:, -1].all():
        return None
    with collector_paused():
        cells = text.replace("\n", ",").split(",")
        cells.pop()  # after the last line's end
        return {name: cells[len(header) + column :: len(header)] for column, name in enumerate(header)}


def _columns(path: Path, text: str, schema: TableSchema) -> dict[str, Sequence[str]]:
    """Return the columns of any CSV file. Raises BadInputError with the line that is wrong."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, None)
        # Millions of lists, none of them garbage.
        with collector_paused():
            rows = list(reader)
    except csv.Error as error:
        raise BadInputError(f"{path}:{reader.line_num}: is no CSV: {error}") from None
    if header is None:
        raise BadInputError("is empty; it must begin with the names of its columns", place=path)
    _require_columns(path, header, schema)
    for row, cells in enumerate(rows):
        if len(cells) != len(header):
            raise BadInputError(
                f"{path}:{_line_of_row(path, row)}: has {len(cells)} cells, the header has {len(header)}"
            )
    return dict(zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True))


def _require_columns(path: Path, present: Sequence[str], schema: TableSchema) -> None:
    for column in schema.columns:
        if column.name not in present:
            raise BadInputError(f"has no column '{column.name}'; it has {quoted(', '.join(present))}", place=path)


def _integers(path: Path, column: ColumnSchema, texts: Sequence[str]) -> Column:
    try:
        return np.array(list(map(int, texts)), np.int64)
    except (ValueError, OverflowError):
        row = next(row for row, text in enumerate(texts) if not _is_int64(text))
        raise BadInputError(
            f"{path}:{_line_of_row(path, row)}: {column.name}: {quoted(texts[row])} is no whole number",
            valid=f"{column.smallest} to {LARGEST}",
        ) from None


def _is_int64(text: str) -> bool:
    try:
        return -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


def _line_of_row(path: Path, row: int) -> int:
    """Return the line that a row begins on; only files with damaged quotes have rows of several lines."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    for _ in range(row + 1):
        next(reader)
    return reader.line_num + 1


def _read_parquet(path: Path, schema: TableSchema) -> Table:
    if importlib.util.find_spec("pyarrow") is None:
        raise EnvironmentLacksError(f"Parquet needs pyarrow: {install_extra('parquet')}", place=path)
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(pyarrow.BufferReader(read_bytes(path)))
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError) as error:
        why = str(error).partition("\n")[0]
        raise BadInputError(f"is no Parquet file: {why}", place=path) from None
    _require_columns(path, table.column_names, schema)
    if len(set(table.column_names)) < len(table.column_names):
        raise BadInputError(f"has a column twice: {quoted(', '.join(table.column_names))}", place=path)
    return {each.name: _parquet_column(path, each, table.column(each.name)) for each in schema.columns}


def _parquet_column(path: Path, column: ColumnSchema, values: Any) -> Column:
    from pyarrow import types

    kind = values.type
    if column.holds is Holds.WIDE_NUMBER and kind == "int64" and not values.null_count:
        return Names.of([str(value) for value in values.to_pylist()])
    if column.holds is not Holds.NUMBER:
        stored = kind.value_type if types.is_dictionary(kind) else kind
        if not types.is_string(stored):
            raise BadInputError(f"{column.name}: is of type {kind}; it must be one of names", place=path)
        return Names.of([text or "" for text in values.to_pylist()])
    if kind != "int64" or values.null_count:
        raise BadInputError(f"{column.name}: is of type {kind}; it must be int64, with a value in each row", place=path)
    return np.asarray(values.to_numpy(), np.int64)


def _check_numbers(table: SavedTable, schema: TableSchema) -> None:
    for column in schema.columns:
        values = table.columns[column.name]
        if isinstance(values, Names):
            if column.holds is Holds.WIDE_NUMBER:
                _check_digits(table, column.name, values)
            continue
        wrong = np.flatnonzero((values < column.smallest) | (values > LARGEST))
        if len(wrong):
            table.refuse(
                int(wrong[0]),
                column.name,
                f"{values[wrong[0]]} is out of range (valid: {column.smallest} to {LARGEST})",
            )
    if schema.spans is not None:
        begin, end = (np.asarray(table.columns[name]) for name in schema.spans)
        wrong = np.flatnonzero(end < begin)
        if len(wrong):
            row = int(wrong[0])
            table.refuse(row, schema.spans[1], f"{end[row]} lies before {schema.spans[0]}, {begin[row]}")


def _check_digits(table: SavedTable, column: str, values: Names) -> None:
    for number, text in enumerate(values.names):
        if not _DIGITS.fullmatch(text):
            row = int(np.flatnonzero(values.codes == number)[0])
            table.refuse(row, column, f"{quoted(text)} is no whole number")


def check_names(
    table: SavedTable, schema: TableSchema, valid: Callable[[Holds], Sequence[str] | None], source: str
) -> None:
    """Check that a fabric has these names.

    Args:
        table: the table.
        schema: its schema.
        valid: the names that a column of such cells may hold; None: any.
        source: where these names come from, for the error.

    Raises:
        BadInputError: says which line holds another.
    """
    for column in schema.columns:
        values, choices = table.columns[column.name], valid(column.holds)
        if not isinstance(values, Names) or choices is None:
            continue
        known = set(choices)
        for number, name in enumerate(values.names):
            if name not in known and (name or not column.may_be_empty):
                row = int(np.flatnonzero(values.codes == number)[0])
                hint = f"; {did_you_mean(name, choices)}" if len(known) < 100 else ""
                what = f"{quoted(name)} is not {column.holds.value} of {source}{hint}"
                table.refuse(row, column.name, what)
