"""Tables of figures, as results print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from weft.results.report_parts import ReportTable

_MOST_WORD = 24


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

    A column is its heading, and whether it is aligned left. The title may have markup; cells have none. Figures are
    always whole: where a terminal is too narrow for them, it breaks the lines.
    """
    table = Table(box=None, pad_edge=False, collapse_padding=layout.is_narrow)
    cells = [list(map(escape, row)) for row in rows]
    for place, (heading, is_name) in enumerate(columns):
        table.add_column(
            heading,
            justify="left" if is_name else "right",
            vertical=layout.headings,
            no_wrap=layout.whole and "\n" not in heading,
            overflow="fold" if is_name else "ellipsis",
            min_width=_least_width(heading, [row[place] for row in cells], is_name),
        )
    for row in cells:
        table.add_row(*row)
    if not table.row_count:
        return
    if title:
        console.print(f"\n{title}")
    gaps = (1 if layout.is_narrow else 2) * (len(table.columns) - 1)
    needed = sum(column.min_width or 0 for column in table.columns) + gaps
    if needed > console.width:
        table.width = needed
    console.print(table, crop=False, soft_wrap=needed > console.width)


def _least_width(heading: str, cells: Sequence[str], is_name: bool) -> int:
    """Return the width in which no figure and no word of a name or heading is broken, up to a limit for words."""
    words = [word for text in (heading, *(cells if is_name else ())) for word in text.split()]
    longest = min(max(map(cell_len, words), default=0), _MOST_WORD)
    return max(longest, 0 if is_name else max(map(cell_len, cells), default=0))


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


def print_report_table(console: Console, table: ReportTable, names: Sequence[str], style: str = "") -> None:
    """Print a page's table with its note, aligned right but for the columns that are `names`; nothing without rows."""
    title = f"[{style}]{escape(table.title)}[/{style}]" if style else escape(table.title)
    rows = [[str(cell) for cell in row] for row in table.rows]
    print_figures(console, title, list(table.columns), rows, names)
    if rows and table.note:
        console.print(escape(table.note))
