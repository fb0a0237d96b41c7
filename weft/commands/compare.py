"""`weft compare`: runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from weft.report.comparison import Comparison
    from weft.results.report_parts import Cell, ReportTable

_MOST_ROWS = 30
_MOST_LETTERS = 60
"""Letters of a cell of reports' parameters."""
_NAMES = ("parameter", "result", "figure", "port", "rank", "run", "KPI", "test", "unit", "condition")
"""Columns that are aligned left."""
_PORTS = 5
"""Ports with their loads, at most, without --all: those with large differences say more than a long list."""
_MOST_COLUMNS = 6
"""Runs in a table, at most, of those after the first; further ones stand in a table of their own below it."""
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument(
    "directories",
    metavar="RUN RUN…",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--by", metavar="FIGURE", help="Rank the runs by this figure; default: step time, or completion time.")
@click.option("--all", "whole", is_flag=True, help="Also equal figures, more loads, derived parameters, counters.")
@click.option("-o", "--output", type=_FILE, help="Also write an HTML page there.")
@click.option("--csv", "csv_file", type=_FILE, help="Also write all figures, not rounded, as CSV there.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Also write the tables as Markdown there.")
def compare(
    directories: tuple[Path, ...],
    by: str | None,
    whole: bool,
    output: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Compare runs by the results that they have left in their directories; a sweep's stands for all its points.

    Directories of `weft bench` are compared by their KPIs. Of runs it shows which parameters differ, the results that
    differ with their ratios to the first run, a ranking, and the ports with the largest differences in load. Results
    with the same labels (collective, algorithm, size, …) are compared; the rest are paired in their order.
    """
    from rich.markup import escape

    from weft.bench.model import is_bench

    if any(map(is_bench, directories)):
        _compare_reports(directories, output, csv_file, markdown_file)
        return
    from weft.report.compared_runs import read_runs
    from weft.report.comparison import comparison
    from weft.system.consoles import make_console

    runs = read_runs(directories)
    compared = comparison(runs, by)
    console = make_console()
    for each in runs:
        if each.problem:
            console.print(f"[bold red]{escape(each.name)}: {each.problem}[/bold red]")
    for key, table in (compared.tables(whole) if whole else compared.tables(ports=_PORTS)).items():
        has_more = key == "loads" and bool(table.note) and not whole
        _print(console, replace(table, note=f"{table.note}; --all shows more") if has_more else table, len(runs))
    _note_internals(compared, whole)
    if output is not None:
        from weft.report.comparison_page import write_comparison

        click.echo(f"wrote {write_comparison(compared, output)}")
    if csv_file is not None or markdown_file is not None:
        from weft.report.comparison_files import write_csv, write_markdown

        for file, write in ((csv_file, write_csv), (markdown_file, write_markdown)):
            if file is not None:
                click.echo(f"wrote {write(compared, file, whole)}")


def _compare_reports(
    directories: Sequence[Path], output: Path | None, csv_file: Path | None, markdown_file: Path | None
) -> None:
    from weft.bench.comparing import read_reports
    from weft.report.html import write_page
    from weft.report.markdown import write_markdown_tables
    from weft.report.table_files import write_csv_tables
    from weft.system.consoles import make_console

    compared = read_reports(directories)
    console, tables = make_console(), compared.tables()
    for table in tables:
        rows = [[_shortened(cell) for cell in row] for row in table.rows]
        _print(console, replace(table, rows=rows), len(directories))
    if output is not None:
        click.echo(f"wrote {write_page(compared.page(), output)}")
    if csv_file is not None:
        click.echo(f"wrote {write_csv_tables(tables, csv_file)}")
    if markdown_file is not None:
        click.echo(f"wrote {write_markdown_tables(compared.names, tables, markdown_file)}")


def _shortened(cell: Cell) -> Cell:
    return f"{cell[: _MOST_LETTERS - 1]}…" if isinstance(cell, str) and len(cell) > _MOST_LETTERS else cell


def _print(console: Console, table: ReportTable, runs: int) -> None:
    """Print a table; one with many runs in several, the first run in each."""
    from rich.markup import escape

    from weft.results.figure_tables import print_figures
    from weft.results.report_parts import shown_of

    shown = table.rows[:_MOST_ROWS]
    note = shown_of(len(shown), len(table.rows), "the page (--output) has more") or table.note
    title = f"[bold]{escape(table.title)}[/bold]" + (f" ({escape(note)})" if note else "")
    if not table.rows:
        console.print(f"\n{title}")
        return
    for part in _parts(table.columns, shown, runs):
        columns, *rows = part
        texts = [[str(cell) for cell in row] for row in rows]
        names = [each for each in map(str, columns) if each in _NAMES]
        print_figures(console, title, [str(each) for each in columns], texts, names)
        title = ""


def _parts(columns: Sequence[str], rows: Sequence[Sequence[Cell]], runs: int) -> list[list[Sequence[Cell]]]:
    """Return a table as one or several, each its heading and rows; with ratios next to the values that they are of."""
    leading = next((number for number, each in enumerate(columns) if each in ("parameter", "figure")), None)
    if leading is None or runs == 2:
        return [[columns, *rows]]
    first = leading + 1
    has_ratios = len(columns) >= first + 2 * runs - 1
    others = list(range(first + 1, first + runs))
    parts = []
    for begin in range(0, len(others), _MOST_COLUMNS):
        chosen = others[begin : begin + _MOST_COLUMNS]
        part: list[Sequence[Cell]] = [[*columns[: first + 1], *(columns[number] for number in chosen)]]
        for row in rows:
            texts: list[Cell] = [*row[: first + 1]]
            for number in chosen:
                ratio = row[number + runs - 1] if has_ratios else ""
                texts.append(f"{row[number]} ×{ratio}" if isinstance(ratio, int | float) else row[number])
            part.append(texts)
        parts.append(part)
    return parts


def _note_internals(compared: Comparison, whole: bool) -> None:
    count = len(compared.derived) + len(compared.counters)
    if count and not whole:
        click.echo(f"\n{count} derived parameters and counters differ, too: --all shows them")
