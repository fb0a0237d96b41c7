"""The option `--coverage` of commands that run programs, and the table that it ends with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from weft.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from weft.switch.coverage.model import ProgramCoverage

MOST_LINES = 12


def _require_directory(_context: click.Context, _option: click.Parameter, directory: Path | None) -> Path | None:
    """Refuse a directory that cannot be added to before anything is run, rather than after."""
    if directory is not None:
        from weft.report.coverage import read_coverage

        directory.mkdir(parents=True, exist_ok=True)
        read_coverage(directory)
        if not os.access(directory, os.W_OK):
            raise EnvironmentLacksError(f"{directory} cannot be written to", place="--coverage")
    return directory


coverage_option = click.option(
    "--coverage",
    "coverage_directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    callback=_require_directory,
    help="Count which lines, branches, actions, states and entries packets reach; DIR adds runs up.",
)


def show_coverage(directory: Path, found: Sequence[ProgramCoverage], console: Console) -> None:
    """Add what was reached to a directory, and print what it has then."""
    from weft.report.coverage import PAGE, TRACEFILE, add_coverage
    from weft.switch.coverage.totals import never, totals

    for coverage in add_coverage(directory, found):
        table = Table(title=f"coverage of {coverage.name}", title_justify="left", box=None)
        for column in ("", "reached", "of"):
            table.add_column(column, justify="right" if column else "left")
        for what, (reached, count) in totals(coverage).items():
            table.add_row(what, str(reached), str(count))
        console.print(table)
        missing = never(coverage)
        for what, name in missing[:MOST_LINES]:
            console.print(f"never: {what} {name}", highlight=False, markup=False, soft_wrap=True)
        if len(missing) > MOST_LINES:
            console.print(
                f"… and {len(missing) - MOST_LINES} more in {directory / PAGE}", highlight=False, soft_wrap=True
            )
    console.print(f"{directory / PAGE}, {directory / TRACEFILE}", highlight=False, soft_wrap=True)
