"""A program's counters and registers that a run observed, on the terminal: a line for each array, or for its cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from rich.console import Console

from weft.recording.tables import Names, Table, names_of
from weft.results.figure_tables import print_figures

MOST_LINES = 12
"""Most lines of a table; its file has the others."""
SERIES = "state_series"
_COUNTER_COLUMNS = ("switch", "counter", "cell", "packets", "bytes")
_REGISTER_COLUMNS = ("switch", "register", "cell", "value")
_SERIES_COLUMNS = ("switch", "object", "cell", "of", "first", "last", "largest")
_SERIES_NAMES = ("switch", "object", "key", "quantity")


def print_observed(console: Console, tables: Mapping[str, Table], suffix: str) -> None:
    """Print what `tables` have of counters, registers and samples; files with the rest end in `suffix`."""
    if "counters" in tables:
        rows = _counters(_rows_of(tables["counters"], ("switch", "counter", "index", "entry", "packets", "bytes")))
        _print(console, "counters at the end", _COUNTER_COLUMNS, list(rows), f"counters.{suffix}")
    if "registers" in tables:
        rows = _registers(_rows_of(tables["registers"], ("switch", "register", "index", "value")))
        _print(console, "registers at the end", _REGISTER_COLUMNS, list(rows), f"registers.{suffix}")
    if SERIES in tables:
        rows = _series(tables[SERIES])
        _print(console, "samples", _SERIES_COLUMNS, list(rows), f"{SERIES}.{suffix}, weft report")


def _print(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], file: str) -> None:
    print_figures(console, title, columns, rows[:MOST_LINES], ("switch", "counter", "register", "object", "cell", "of"))
    if len(rows) > MOST_LINES:
        console.print(f"… and {len(rows) - MOST_LINES:,} more ({file})", highlight=False)
    elif not rows:
        console.print(f"\n{title}: all are 0", highlight=False)


def _rows_of(table: Table, names: Sequence[str]) -> list[tuple[str, ...]]:
    columns = [table[name] for name in names]
    texts = [(column.texts() if isinstance(column, Names) else column).tolist() for column in columns]
    return [tuple(map(str, row)) for row in zip(*texts, strict=True)]


def _grouped(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[tuple[str, str], list[tuple[str, ...]]]]:
    """Yield the cells of each switch's array."""
    groups: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for switch, name, *cell in rows:
        groups.setdefault((switch, name), []).append(tuple(cell))
    yield from groups.items()


def _counters(rows: Iterable[tuple[str, ...]]) -> Iterator[Sequence[str]]:
    for (switch, name), cells in _grouped(rows):
        index, entry, *_ = max(cells, key=lambda cell: int(cell[2]))
        packets, size = (sum(int(cell[place]) for cell in cells) for place in (2, 3))
        yield switch, name, _which(entry or f"[{index}]", len(cells)), f"{packets:,}", f"{size:,}"


def _registers(rows: Iterable[tuple[str, ...]]) -> Iterator[Sequence[str]]:
    for (switch, name), cells in _grouped(rows):
        index, value = max(cells, key=lambda cell: int(cell[1]))
        shown = value if len(cells) == 1 else f"at most {value}"
        yield switch, name, _which(f"[{index}]", len(cells)), shown


def _which(largest: str, count: int) -> str:
    return largest if count == 1 else f"{count:,} cells, most in {largest}"


def _series(table: Table) -> Iterator[Sequence[str]]:
    """Yield first, last and largest value of each series, in the order in which they begin."""
    columns = [names_of(table, name) for name in _SERIES_NAMES]
    numbers = np.zeros(len(columns[0].codes), np.int64)
    for column in columns:
        numbers = numbers * (len(column.names) + 1) + column.codes + 1
    held = table["value"]
    # Wide values are digits.
    values = np.array([int(text) for text in held.texts()], object) if isinstance(held, Names) else held
    _, first, series = np.unique(numbers, return_index=True, return_inverse=True)
    last = np.zeros_like(first)
    np.maximum.at(last, series, np.arange(len(series)))
    largest = values[first].copy()
    np.maximum.at(largest, series, values)
    texts = [column.take(first).texts().tolist() for column in columns]
    for number in np.argsort(first, kind="stable").tolist():
        own = [int(values[first[number]]), int(values[last[number]]), int(largest[number])]
        yield *(text[number] for text in texts), *(f"{value:,}" for value in own)
