"""Files next to results.json with a row for each record of a result: a flow, an operation or a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from weft.recording.reading import SavedTable, read_table_of
from weft.recording.schema import TableSchema
from weft.recording.tables import Table, integers_of, write_table


@dataclass(frozen=True)
class RecordFile(ABC):
    """Files NAME-NUMBER-RECORDS.csv, one for each result of a kind; `records` is the class's.

    `schema` has the columns that are read back.
    """

    records: ClassVar[str]

    name: str
    schema: TableSchema

    def of(self, number: int) -> str:
        """Return the name of the file of a result by its place."""
        return f"{self.stem(number)}.csv"

    def stem(self, number: int) -> str:
        """Return the same without the suffix."""
        return f"{self.name}-{number}-{self.records}"

    def save(self, table: Table, directory: Path, number: int) -> None:
        """Write the file of a result."""
        write_table(table, directory / self.stem(number), "csv")

    def read(self, directory: Path, number: int, hosts: int) -> Table:
        """Return what the file of a result holds, nothing where there is none; hosts are 0 to `hosts` - 1.

        Raises:
            BadInputError: the file is not what a run writes; says which line.
        """
        table = read_table_of(self.schema, directory, self.stem(number))
        if table is None:
            return {}
        self.check(table, hosts)
        return table.columns

    @abstractmethod
    def check(self, table: SavedTable, hosts: int) -> None:
        """Refuse (`SavedTable.refuse`) a row that does not fit the others, or the hosts."""


def refuse_beyond(table: SavedTable, column: str, count: int, what: str) -> None:
    """Refuse the first row with a number in a column that is not one of the fabric's `count`."""
    values = integers_of(table.columns, column)
    wrong = np.flatnonzero(values >= count)
    if len(wrong):
        row = int(wrong[0])
        table.refuse(row, column, f"{values[row]} is no {what} of the run's fabric (valid: 0 to {count - 1})")
