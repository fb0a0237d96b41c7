"""Tables of figures, as results print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table


@dataclass(frozen=True)
class Layout:
    """How a table stands on the terminal.

    A narrow table has less space between its columns. Headings of several lines end on one line if they are at the
    bottom; cells below headings of one line are never broken if these are `whole`.
    """

    is_narrow: bool = False
    headings: Literal["top", "bottom"] = "top"
    whole: bool = False


def print_table(
    console: Console,
    title: str,
    columns: Sequence[tuple[str, bool]],
    rows: Iterable[Sequence[str]],
    layout: Layout,
) -> None:
    """Print a title, unless it is empty, and below it a table; nothing without rows.

    A column is its heading, and whether it is aligned left. The title may have markup; cells have none.
    """
    table = Table(box=None, pad_edge=False, collapse_padding=layout.is_narrow)
    for heading, is_name in columns:
        table.add_column(
            heading,
            justify="left" if is_name else "right",
            vertical=layout.headings,
            no_wrap=layout.whole and "\n" not in heading,
        )
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        if title:
            console.print(f"\n{title}")
        console.print(table)


def print_figures(
    console: Console,
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    names: Sequence[str] = (),
) -> None:
    """Print a title and below it a table, aligned right but for the columns that are `names`; nothing without rows.

    The title may have markup; cells have none.
    """
    print_table(console, title, [(each, each in names) for each in columns], rows, Layout())
