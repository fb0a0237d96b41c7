"""`weft report`: a run, or a sweep, as one page."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; default DIRECTORY/report.html.",
)
def report(directory: Path, output: Path | None) -> None:
    """Make one HTML page of what a run, or a sweep, has left in DIRECTORY; it opens offline.

    It shows what the run has recorded: topology and utilisation always, the rest as the scenario's `observe` asked.
    Of a sweep it shows what varies, results against the axes and all points, each with a page of its own.
    """
    from weft.report.page import write_report
    from weft.report.sweep_page import is_sweep, write_sweep_report

    write = write_sweep_report if is_sweep(directory) else write_report
    click.echo(f"wrote {write(directory, output or directory / 'report.html')}")
