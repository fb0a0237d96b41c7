"""Consoles for tables: on a terminal they fit its width; elsewhere lines grow so that no cell is broken."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

TEXT_WIDTH = 120
"""Columns at which prose and headings wrap where there is no terminal."""
_UNBOUNDED = 1_000_000
"""Columns with which widths are measured; more than any table has."""


def make_console(stderr: bool = False) -> Console:
    """Return a console for tables on standard output, or on standard error."""
    console = Console(stderr=stderr, highlight=False)
    # COLUMNS does not count without a terminal: the same command prints the same bytes into every pipe.
    return console if console.is_terminal else PipeConsole(stderr=stderr, highlight=False, width=TEXT_WIDTH)


class PipeConsole(Console):
    """A console for pipes and files, which other programs read: names there are whole, on one line."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print like rich, but a table that is wider than the console keeps its cells whole; its headings wrap."""
        needed = [self._width_of(each) for each in objects if isinstance(each, Table)]
        before = self.width
        self.width = max([before, *needed])
        try:
            super().print(*objects, **options)
        finally:
            self.width = before

    def _width_of(self, table: Table) -> int:
        if self._measured(table).maximum <= self.width:
            return self.width
        for column in table.columns:
            cells = [self._measured(cell).maximum for cell in column.cells]
            column.width = max([self._measured(column.header).minimum, *cells])
        return self._measured(table).maximum

    def _measured(self, renderable: Any) -> Measurement:
        return Measurement.get(self, self.options.update(width=_UNBOUNDED), renderable)
