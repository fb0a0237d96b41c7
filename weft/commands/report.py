"""`weft report`: a run as one page."""

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
    """Make one HTML page of what a run has left in DIRECTORY; it opens offline.

    It shows what the run has recorded: topology and utilisation always, the rest as the scenario's `observe` asked.
    """
    from weft.report.page import write_report

    click.echo(f"wrote {write_report(directory, output or directory / 'report.html')}")
