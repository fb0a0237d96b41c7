"""`weft sweep`: a scenario with every combination of some parameters, and one table of what they found."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, set_option

if TYPE_CHECKING:
    from weft.sweeps import Axis, Outcome, Point, SweepResult

_MOST_PROBLEMS = 10
_MAX_ROWS = 200
"""Most rows of the printed table."""


@click.command()
@click.argument("file", type=SCENARIO_FILE, metavar="SWEEP.yaml|SCENARIO.yaml")
@click.option(
    "--grid",
    "grid",
    multiple=True,
    metavar="KEY=V1,V2…",
    help="A parameter and its values, e.g. fabric.spines=2,4,8 or seed=1..5. Several make every combination.",
)
@click.option(
    "--zip",
    "zipped",
    multiple=True,
    metavar="KEY=V1,V2…",
    help="As --grid, but all of these change together: first values, second values, and so on.",
)
@set_option
@click.option("--workers", type=click.IntRange(1), help="Runs at a time; default: as many as processors.")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A Dask cluster that runs them instead, e.g. tcp://head:8786; it shares Weft and --out with this machine.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of table.csv and of every run's results.",
)
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@click.option("--json", "as_json", is_flag=True, help="Print the table's rows as JSON.")
def sweep(
    file: Path,
    grid: tuple[str, ...],
    zipped: tuple[str, ...],
    assignments: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    out: Path,
    retry_failed: bool,
    as_json: bool,
) -> int:
    """Run a scenario under the virtual clock with every combination of some parameters.

    Each run is a process of its own. Runs that have finished in --out before are not repeated, so that an interrupted
    sweep goes on where it was. Exits with 1 if a run failed.
    """
    from weft.sweeps import run_sweep

    changes = changes_of({"assignments": assignments})
    try:
        with _progress() as progress:
            result = run_sweep(file, _axes(grid, zipped), out, workers, scheduler, retry_failed, progress, changes)
    except KeyboardInterrupt:
        click.echo("· what runs has been ended; the same command goes on with what is left", err=True)
        raise
    if as_json:
        print(json.dumps(result.rows, indent=1))
    else:
        _print_outcome(result)
    return 0 if result.ok else 1


def _axes(grid: tuple[str, ...], zipped: tuple[str, ...]) -> list[Axis]:
    from weft.errors import BadInputError
    from weft.sweeps.axes import grid_axis, parse_assignment, zip_axis

    columns: dict[str, list[Any]] = {}
    for text in zipped:
        key, values = parse_assignment(text, "--zip")
        if key in columns:
            raise BadInputError(f"'{key}' is given twice", place="--zip")
        columns[key] = values
    axes = [zip_axis(columns, "--zip")] if columns else []
    return axes + [grid_axis(*parse_assignment(text, "--grid"), "--grid") for text in grid]


class _RichProgress:
    """A bar on a terminal, a line for each run elsewhere, on stderr."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task: Any = None
        self._done = 0
        self._left = 0

    def begin(self, points: int, left: int) -> None:
        """See SweepProgress."""
        self._left = left
        self._say(f"{points} points, {left} to run")
        self._task = self._bar.add_task("sweep", total=points, completed=points - left)

    def done(self, point: Point, outcome: Outcome) -> None:
        """See SweepProgress."""
        self._done += 1
        self._bar.advance(self._task)
        if outcome.error or not self._bar.console.is_terminal:
            error = f": {outcome.error}" if outcome.error else ""
            self._say(f"{self._done}/{self._left} {point.label}: {outcome.state}{error}")

    def _say(self, text: str) -> None:
        self._bar.console.print(f"· {text}", markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _progress() -> Iterator[_RichProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _RichProgress(bar)


def _print_outcome(result: SweepResult) -> None:
    _print_table(result)
    failed = result.failed()
    for point, error in failed[:_MOST_PROBLEMS]:
        click.echo(f"failed: {point.label}: {error}\n        see {result.directory_of(point)}")
    if len(failed) > _MOST_PROBLEMS:
        click.echo(f"… and {len(failed) - _MOST_PROBLEMS} more")
    finished = len(result.points) - len(failed)
    rows = f"{len(result.rows)} rows in {_from_here(result.table)}"
    click.echo(f"{finished} of {len(result.points)} points finished; {rows}")


def _from_here(path: Path) -> Path:
    """Return a path below the working directory as people give it, any other as it is."""
    here = Path.cwd().resolve()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _print_table(result: SweepResult) -> None:
    """Print what varies and the results that matter; table.csv has every column."""
    from weft.results.figure_tables import print_figures
    from weft.sweeps.summary import summarise
    from weft.system.consoles import make_console

    summary = summarise(result.rows, result.parameters)
    cells = [summary.cells(row) for row in summary.rows[:_MAX_ROWS]]
    names = summary.headings()[: len(summary.axes) + len(summary.labels)]
    shown = "" if len(summary.rows) == len(cells) else f"the first {len(cells)} of "
    title = f"{shown}{len(summary.rows)} rows" + (f" ({summary.note})" if summary.note else "")
    print_figures(make_console(), title, summary.headings(), cells, names)
    click.echo()
