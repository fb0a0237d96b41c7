"""`weft check`: which goals of a lab's exercise a folder reaches, and what is missing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import complete_lab

if TYPE_CHECKING:
    from weft.exercises import Exercise


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--lab",
    "name",
    metavar="NAME",
    shell_complete=complete_lab,
    help="Which lab; by default the one that FOLDER was copied from.",
)
@click.option("--solution", is_flag=True, help="Check the solution that ships with --lab instead of a folder.")
def check(folder: Path, name: str | None, solution: bool) -> int:
    """Check the work in FOLDER, a copy of a lab (`weft labs copy`), against the lab's goals.

    Runs what is there under the virtual clock and says item by item what holds and what is missing. Exit code 1 if
    anything is missing.
    """
    from weft.exercises import exercise_of, lab_of_folder, starter_and_solution
    from weft.system.shipped_labs import LAB_PREFIX, find_lab

    if solution and name is None:
        raise click.UsageError("--solution: say of which lab, --lab NAME")
    lab = find_lab(name.removeprefix(LAB_PREFIX)) if name is not None else lab_of_folder(folder)
    exercise = exercise_of(lab)
    if not solution:
        return _show(lab.name, exercise, folder)
    with tempfile.TemporaryDirectory(prefix="weft-") as directory:
        work = Path(directory) / lab.name
        starter_and_solution(lab, work)
        return _show(f"{lab.name}, its solution", exercise, work)


def _show(title: str, exercise: Exercise, folder: Path) -> int:
    """Print each goal as it is decided; returns the exit code."""
    from weft.commands.progress import make_progress
    from weft.exercises import Work, outcomes
    from weft.system.streams import printable

    click.echo(f"lab {title}")
    reached, said = 0, set()
    for outcome in outcomes(exercise, Work(folder, make_progress())):
        click.echo(f"[{' ' if outcome.missing else 'x'}] {outcome.goal.text}")
        reached += outcome.missing is None
        if outcome.missing is None:
            continue
        # A file that is not there keeps several goals from being reached.
        repeated = outcome.missing in said
        said.add(outcome.missing)
        # Words of a student's file must not look like lines of the check.
        lines = ["the same"] if repeated else outcome.missing.splitlines()
        click.echo("    missing: " + "\n    ".join(map(printable, lines)))
        if not repeated:
            click.echo(f"    hint: {outcome.goal.hint}")
    click.echo(f"{reached} of {len(exercise.goals)} goals reached")
    return int(reached < len(exercise.goals))
