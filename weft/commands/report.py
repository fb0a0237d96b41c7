"""`weft report`: a run, a sweep or a benchmark as one page."""

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
    """Make one HTML page of what a run, a sweep or a benchmark has left in DIRECTORY; it opens offline.

    It shows what the run has recorded: topology and utilisation always, the rest as the scenario's `observe` asked.
    Of a sweep it shows what varies, results against the axes and all points, each with a page of its own.
    """
    from weft.bench.model import is_bench, read_report
    from weft.report.page import write_report
    from weft.report.sweep_page import is_sweep, write_sweep_report

    if is_bench(directory):
        from weft.bench.report_page import PAGE_FILE, write_bench_page

        click.echo(f"wrote {write_bench_page(read_report(directory), output or directory / PAGE_FILE)}")
        return
    write = write_sweep_report if is_sweep(directory) else write_report
    click.echo(f"wrote {write(directory, output or directory / 'report.html')}")
