"""`weft sweep`: a scenario with every combination of some parameters, and one table of what they found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import changes_of, set_option

if TYPE_CHECKING:
    from weft.sweeps import Axis


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
@click.option(
    "--repeat",
    type=int,
    metavar="N",
    help="Run each point with N seeds, from the scenario's on, and print statistics; as `repeat: N` in SWEEP.yaml.",
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
    help="Directory of table.csv, statistics.csv and every run's results.",
)
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@click.option("--json", "as_json", is_flag=True, help="Print the table's rows as JSON.")
def sweep(
    file: Path,
    grid: tuple[str, ...],
    zipped: tuple[str, ...],
    repeat: int | None,
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

    Points that differ only in their seed (--repeat, --grid seed=…) are repetitions: one row has their mean, 95 %
    confidence interval, standard deviation and extremes.
    """
    from weft.commands.sweep_output import print_outcome, sweep_progress
    from weft.sweeps import run_sweep

    changes = changes_of({"assignments": assignments})
    try:
        with sweep_progress() as progress:
            axes = _axes(grid, zipped)
            result = run_sweep(file, axes, out, workers, scheduler, retry_failed, progress, changes, repeat)
    except KeyboardInterrupt:
        click.echo("· what runs has been ended; the same command goes on with what is left", err=True)
        raise
    if as_json:
        print(json.dumps(result.rows, indent=1))
    else:
        print_outcome(result)
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
