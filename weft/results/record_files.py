"""Files next to results.json with a row for each record of a result: a flow, an operation or a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from weft.recording.tables import Table, write_table


@dataclass(frozen=True)
class RecordFile(ABC):
    """Files NAME-NUMBER-RECORDS.csv, one for each result of a kind; `records` is the class's."""

    records: ClassVar[str]

    name: str

    def of(self, number: int) -> str:
        """Return the name of the file of a result by its place."""
        return f"{self.stem(number)}.csv"

    def stem(self, number: int) -> str:
        """Return the same without the suffix."""
        return f"{self.name}-{number}-{self.records}"

    def save(self, table: Table, directory: Path, number: int) -> None:
        """Write the file of a result."""
        write_table(table, directory / self.stem(number), "csv")

    @abstractmethod
    def read(self, directory: Path, number: int, hosts: int) -> Table:
        """Return what the file of a result holds, nothing where there is none; hosts are 0 to `hosts` - 1.

        Raises:
            BadInputError: the file is not what a run writes; says which line.
        """
