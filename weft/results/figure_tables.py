"""Tables of figures, as results print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_figures(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    names: Sequence[str] = (),
    *,
    is_narrow: bool = False,
) -> None:
    """Print a title and below it a table, aligned right but for the columns that are `names`; nothing without rows.

    The title may have markup; cells have none. A narrow table has less space between its columns.
    """
    table = Table(box=None, pad_edge=False, collapse_padding=is_narrow)
    for column in columns:
        table.add_column(column, justify="left" if column in names else "right")
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        console.print(f"\n{title}")
        console.print(table)
