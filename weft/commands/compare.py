"""`weft compare`: two runs side by side."""

from __future__ import annotations

from pathlib import Path

import click

_MOST_ROWS = 30
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("first", metavar="A", type=_DIRECTORY)
@click.argument("second", metavar="B", type=_DIRECTORY)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Also write an HTML page there.")
def compare(first: Path, second: Path, output: Path | None) -> None:
    """Compare the runs that have left their results in the directories A and B.

    Shows which parameters differ, the results of both with B over A, and the ports whose loads differ most. Results
    with the same labels (collective, algorithm, size, …) are compared; the rest are paired in their order.
    """
    from rich.markup import escape

    from weft.report.comparison import comparison, read_runs
    from weft.report.comparison_page import write_comparison
    from weft.results.figure_tables import print_figures
    from weft.results.report_parts import ReportTable, shown_of
    from weft.system.consoles import make_console

    runs = read_runs(first, second)
    console = make_console()
    for each in runs:
        if not each.run.results.ok:
            console.print(f"[bold red]a check failed in {escape(each.name)}[/bold red]")
        late = each.run.results.lateness
        if late is not None and not late.valid:
            console.print(f"[bold red]{escape(each.name)}: late events, its times are INVALID[/bold red]")
    for part in comparison(*runs).values():
        if isinstance(part, ReportTable):
            rows = [[str(cell) for cell in row] for row in part.rows[:_MOST_ROWS]]
            note = shown_of(len(rows), len(part.rows), "the page (--output) has more") or part.note
            title = f"[bold]{escape(part.title)}[/bold]" + (f" ({note})" if note else "")
            names = [column for column in part.columns if column in ("parameter", "result", "figure", "port")]
            print_figures(console, title, part.columns, rows, names)
    if output is not None:
        click.echo(f"wrote {write_comparison(*runs, output)}")
