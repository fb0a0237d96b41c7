"""`weft drill`: does a scenario keep its objective while things fail?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option

if TYPE_CHECKING:
    from weft.drills import DrillReport


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option("--count", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Drills to run.")
@click.option("--workers", type=click.IntRange(1), help="Runs at a time; default: as many as processors.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of all runs, drills.json and the smallest broken scenarios; default runs/drills-NAME.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@set_option
def drill(
    scenario: Path, count: int, workers: int | None, out: Path | None, as_json: bool, assignments: tuple[str, ...]
) -> int:
    """Run a scenario many times with faults drawn at random, and judge each run by the objective.

    SCENARIO may have a section `drill` with the kinds of faults and the objective (docs/drills.md); its seed draws the
    faults. Of a drill that breaks the objective, faults are left out until none can go, and what is left is written
    as a scenario. Drills that have finished in --out before are not repeated. Exits with 1 if the objective broke.
    """
    from weft.commands.trial_progress import trial_progress
    from weft.drills import run_drills
    from weft.drills.running import JSON_FILE

    directory = out or Path("runs") / f"drills-{scenario.stem}"
    with trial_progress("drill") as progress:
        report = run_drills(scenario, assignments_of("--set", assignments), directory, count, workers, progress)
    if as_json:
        click.echo((directory / JSON_FILE).read_text(encoding="utf-8"), nl=False)
    else:
        _print(report, directory)
    return 0 if report.ok else 1


def _print(report: DrillReport, directory: Path) -> None:
    from weft.drills import running as parts
    from weft.results.figure_tables import print_report_table
    from weft.system.consoles import make_console

    console: Any = make_console()
    for table, names in (
        (parts.kinds_table(report), ["fault"]),
        (parts.figures_table(report), ["figure"]),
        (parts.broken_table(report), ["by the least of its faults", "what broke"]),
    ):
        print_report_table(console, table, names)
    click.echo(f"\n{parts.verdict(report)}\nruns and {parts.JSON_FILE}: {directory}")
