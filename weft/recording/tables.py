"""Tables of a run as columns, and their files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.quantities.arrays import Integers
from weft.system.writing import written_whole

_ROWS_AT_ONCE = 1 << 16
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Names:
    """A column of names: `names[codes[row]]`; a code of -1 stands for none."""

    codes: Integers
    names: Sequence[str]

    def take(self, rows: Integers) -> Names:
        """Return these rows."""
        return Names(self.codes[rows], self.names)

    def texts(self) -> NDArray[np.object_]:
        """Return the names themselves, "" for none."""
        return np.array([*self.names, ""], dtype=object)[self.codes]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Names:
        """Make a column of texts."""
        names = list(dict.fromkeys(texts))
        numbers = {name: number for number, name in enumerate(names)}
        return cls(np.array(list(map(numbers.__getitem__, texts)), np.int64), names)


Column = Integers | Names
Table = Mapping[str, Column]


def integers_or_digits(values: Sequence[int]) -> Column:
    """Return a column of numbers; of their digits if one is too wide for it."""
    if any(abs(value) > _LARGEST for value in values):
        return Names.of([str(value) for value in values])
    return np.array(values, np.int64)


def integers_of(table: Table, column: str) -> Integers:
    """Return a table's column of numbers."""
    values = table[column]
    assert not isinstance(values, Names)
    return values


def names_of(table: Table, column: str) -> Names:
    """Return a table's column of names."""
    values = table[column]
    assert isinstance(values, Names)
    return values


def row_count(table: Table) -> int:
    """Return the number of rows; all columns have as many."""
    first: Column | tuple[()] = next(iter(table.values()), ())
    return len(first.codes if isinstance(first, Names) else first)


def write_table(table: Table, path: Path, file_format: Literal["csv", "parquet"]) -> Path:
    """Write a table to `path` with the format's suffix, and return where it is."""
    if file_format == "parquet":
        return _write_parquet(table, path.with_name(path.name + ".parquet"))
    return _write_csv(table, path.with_name(path.name + ".csv"))


def _write_csv(table: Table, path: Path) -> Path:
    with written_whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        for begin in range(0, row_count(table), _ROWS_AT_ONCE):
            rows = np.arange(begin, min(begin + _ROWS_AT_ONCE, row_count(table)))
            writer.writerows(zip(*(_plain(column, rows) for column in table.values()), strict=True))
    return path


def _plain(column: Column, rows: Integers) -> list[object]:
    return list(column.take(rows).texts()) if isinstance(column, Names) else column[rows].tolist()


def _write_parquet(table: Table, path: Path) -> Path:
    import pyarrow
    from pyarrow import parquet

    columns = {
        name: _dictionary(column) if isinstance(column, Names) else pyarrow.array(column)
        for name, column in table.items()
    }
    with written_whole(path) as partial:
        parquet.write_table(pyarrow.table(columns), partial, compression="zstd")
    return path


def _dictionary(column: Names):  # type: ignore[no-untyped-def]  # pyarrow has no types
    import pyarrow

    codes = pyarrow.array(column.codes, pyarrow.int32(), mask=column.codes < 0)
    return pyarrow.DictionaryArray.from_arrays(codes, pyarrow.array(list(column.names), pyarrow.string()))
