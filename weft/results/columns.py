"""Columns of results, each declared once for tables on the terminal and on pages, and for comparisons in sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast

from rich.console import Console

from weft.results.figure_tables import Layout, print_table
from weft.results.report_parts import Cell, ReportTable, shown_of

T = TypeVar("T")
Value = str | Callable[[T], Any]
Place = Literal["terminal", "page", "sweep"]


class Look(TypedDict, total=False):
    """Differences from a column's declaration at one place: fields of `Column` by their names."""

    title: str
    value: Value[Any]
    unit: str
    scale: float
    digits: int | None
    form: Callable[[Any], Cell] | None
    missing: str
    over: Callable[[list[float]], float]
    more_is_better: bool


@dataclass(frozen=True, eq=False)
class Column(Generic[T]):
    """A figure of a result, and where it is shown.

    Args:
        title: its heading; line breaks are the terminal's. The unit follows on the line on which the title ends.
        value: a field or property of the row, dotted (`latency_ps.mean`) if it is inside another; or a function of the
            row. If sweeps compare it, its key in results.json.
        unit: unit of the value over `scale`.
        scale: divides the values.
        digits: decimals shown; None: values as they are.
        form: makes a cell of the value in its unit, in place of `digits`.
        missing: cell for None.
        over: makes one figure of all planes' figures, where sweeps compare whole runs.
        more_is_better: rankings of runs begin with the largest value, not with the smallest.
        is_name: it is aligned left on the terminal.
        is_numbered: pages have the row's place before it, from 1.
        only_if: returns whether any of the rows has something to show there.
        terminal: differences on the terminal; None: it is not shown there.
        page: the same on the page of a run.
        sweep: the same where sweeps and `weft compare` compare runs, which they do only if there is something here.
    """

    title: str
    value: Value[T]
    unit: str = ""
    scale: float = 1
    digits: int | None = None
    form: Callable[[Any], Cell] | None = None
    missing: str = ""
    over: Callable[[list[float]], float] = sum
    more_is_better: bool = False
    is_name: bool = False
    is_numbered: bool = False
    only_if: Callable[[Sequence[T]], bool] = lambda _: True
    terminal: Look | None = field(default_factory=Look)
    page: Look | None = field(default_factory=Look)
    sweep: Look | None = None

    def at(self, place: Place) -> Column[T] | None:
        """Return the column as it is shown at a place, None if it is not."""
        look: Look | None = getattr(self, place)
        return None if look is None else replace(self, **look)

    @property
    def name(self) -> str:
        """Return the title on one line."""
        return " ".join(self.title.split())

    @property
    def heading(self) -> str:
        """Return the title with the unit."""
        gap = "" if not self.title or self.title.endswith("\n") else " "
        return f"{self.title}{gap}({self.unit})" if self.unit else self.title

    def of(self, row: T) -> Any:
        """Return the value of a row; None where what holds it is None."""
        if not isinstance(self.value, str):
            return self.value(row)
        found: Any = row
        for name in self.value.split("."):
            found = None if found is None else getattr(found, name)
        return found

    def _scaled(self, row: T) -> Any:
        value = self.of(row)
        return value if value is None or self.scale == 1 else value / self.scale

    def cell(self, row: T) -> Cell:
        """Return what a page has: numbers as such."""
        value = self._scaled(row)
        if value is None:
            return self.missing
        if self.form is not None:
            return self.form(value)
        if self.digits is None or isinstance(value, str):
            return cast("Cell", value)
        return cast("Cell", round(value, self.digits or None))

    def text(self, row: T) -> str:
        """Return what the terminal has: numbers with all of the column's digits."""
        value = self._scaled(row)
        if value is None or self.form is not None or self.digits is None or isinstance(value, str):
            return str(self.cell(row))
        return f"{value:.{self.digits}f}"


def grouped(cell: Cell) -> str:
    """Return a cell for the terminal: thousands of numbers apart."""
    return cell if isinstance(cell, str) else f"{cell:,}"


def grouped_thousandths(cell: Cell) -> str:
    """Return a cell for the terminal: thousands of numbers apart, fractions with three digits."""
    return f"{cell:,.3f}" if isinstance(cell, float) else grouped(cell)


@dataclass(frozen=True, eq=False)
class ResultTable(Generic[T]):
    """A table with a row per result, on the terminal and on a page.

    Args:
        title: title of the page's table.
        columns: in their order, for both places.
        heading: above the terminal's, with markup; empty: nothing.
        note: below the page's.
        layout: of the terminal's.
        shown: makes the terminal's texts of cells; without it, they have all digits that columns state.
        most_printed: rows on the terminal; None: all.
        most: rows on a page; None: all.
        which: the page's description of the rows that it shows, if there are more.
    """

    title: str
    columns: Sequence[Column[T]]
    heading: str = ""
    note: str = ""
    layout: Layout = field(default_factory=Layout)
    shown: Callable[[Cell], str] | None = None
    most_printed: int | None = None
    most: int | None = None
    which: str = "the first"

    def _at(self, place: Place, rows: Sequence[T]) -> list[Column[T]]:
        found = (each.at(place) for each in self.columns if each.only_if(rows))
        return [each for each in found if each is not None]

    def print(self, console: Console, rows: Sequence[T], heading: str | None = None) -> None:
        """Print it, if there are rows, and how many more there are; `heading` in place of the table's."""
        columns = self._at("terminal", rows)
        shown = self.shown
        texts: Iterable[list[str]] = (
            [each.text(row) if shown is None else shown(each.cell(row)) for each in columns]
            for row in rows[: self.most_printed]
        )
        headings = [(each.heading, each.is_name) for each in columns]
        print_table(console, self.heading if heading is None else heading, headings, texts, self.layout)
        if self.most_printed is not None and len(rows) > self.most_printed:
            console.print(f"… and {len(rows) - self.most_printed:,} more")

    def part(self, rows: Sequence[T], note: str | None = None, title: str | None = None) -> ReportTable:
        """Return the page's table; `note` and `title` in place of the table's."""
        columns = self._at("page", rows)
        shown = rows if self.most is None else rows[: self.most]
        notes = (self.note if note is None else note, shown_of(len(shown), len(rows), self.which))
        return ReportTable(
            self.title if title is None else title,
            [" ".join(each.heading.split()) for each in columns],
            [
                [f"{number} {each.cell(row)}" if each.is_numbered else each.cell(row) for each in columns]
                for number, row in enumerate(shown, 1)
            ],
            "; ".join(filter(None, notes)),
        )
