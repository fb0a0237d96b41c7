"""A sweep's progress and its outcome, on the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from weft.sweeps import Outcome, Point, SweepResult
    from weft.sweeps.repetitions import Repetitions

_MOST_PROBLEMS = 10
_MAX_ROWS = 200
"""Most rows of the printed table."""


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
def sweep_progress() -> Iterator[_RichProgress]:
    """Show the progress of a sweep on standard error, within the context."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _RichProgress(bar)


def print_outcome(result: SweepResult, what: str = "point") -> None:
    """Print what varies and the results that matter, or their statistics, and what failed.

    `what` is what messages call a run. The files have every column.
    """
    if result.repetitions is None:
        _print_table(result)
    else:
        _print_statistics(result.repetitions)
    failed = result.failed()
    for point, error in failed[:_MOST_PROBLEMS]:
        click.echo(f"failed: {point.label}: {error}\n        see {result.directory_of(point)}")
    if len(failed) > _MOST_PROBLEMS:
        click.echo(f"… and {len(failed) - _MOST_PROBLEMS} more")
    finished = len(result.points) - len(failed)
    rows = f"{len(result.rows)} rows in {_from_here(result.table)}"
    if result.statistics is not None:
        rows += f", statistics in {_from_here(result.statistics)}"
    click.echo(f"{finished} of {len(result.points)} {what}s finished; {rows}")


def _from_here(path: Path) -> Path:
    """Return a path below the working directory as people give it, any other as it is."""
    here = Path.cwd().resolve()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _print_table(result: SweepResult) -> None:
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


def _print_statistics(found: Repetitions) -> None:
    from rich.markup import escape

    from weft.results.figure_tables import print_figures
    from weft.results.report_parts import shown_of
    from weft.system.consoles import make_console

    cells = list(found.cells())
    shared = ", ".join(f"{label}: {value}" for label, value in found.shared.items())
    note = "; ".join(filter(None, (shown_of(min(len(cells), _MAX_ROWS), len(cells), "the first"), escape(shared))))
    title = f"[bold]{found.title}[/bold]" + (f" ({note})" if note else "")
    print_figures(make_console(), title, found.headings(), cells[:_MAX_ROWS], found.names)
    click.echo()
    for line in found.remarks():
        click.echo(line)
