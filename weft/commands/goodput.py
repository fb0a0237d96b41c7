"""`weft goodput`: what failures, checkpoints and restarts leave of a cluster's time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError

if TYPE_CHECKING:
    from weft.goodput import MeasuredCheckpoint, MeasuredFailure, Outcome
    from weft.scenario import Change
    from weft.scenario.cluster import ClusterSection
    from weft.topologies import FabricSpec


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "--histories",
    type=click.IntRange(2, 100_000),
    default=20,
    show_default=True,
    help="How often the cluster's life is drawn, each time with other failures.",
)
@click.option("--intervals", is_flag=True, help="Also with other checkpoint intervals, from a tenth to ten times.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write goodput.html and goodput.json there."
)
@click.option("--workers", type=click.IntRange(1), help="Runs at a time; default: as many as processors.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@set_option
def goodput(
    scenario: Path,
    histories: int,
    intervals: bool,
    out: Path | None,
    workers: int | None,
    as_json: bool,
    assignments: tuple[str, ...],
) -> None:
    """Live the days of a cluster that trains: failures, checkpoints, restarts, hosts that are replaced.

    SCENARIO has a section `cluster` (docs/goodput.md). Its traffic is run only where the effect of failures is to be
    measured; otherwise nothing is sent. Prints what the time goes to, next to published formulas.
    """
    from weft.goodput import cluster_of, outcome_of
    from weft.goodput import report as parts
    from weft.goodput.made_by import made_by
    from weft.scenario.cluster import cluster_section
    from weft.scenario.network_file import load_fabric
    from weft.scenario.topology import build_topology

    changes = assignments_of("--set", assignments)
    loaded = load_fabric(scenario, changes)
    name = loaded.name or scenario.stem
    with loaded.places.locating():
        settings = cluster_section(loaded)
        if not settings.failures:
            raise BadInputError(
                "the scenario says of no part how often it fails",
                place="cluster.failures",
                valid="a list, such as [{part: accelerator, mtbf: 50000h}]",
            )
        fabric = build_topology(loaded.fabric)
        of = made_by(loaded, fabric)
        settings, measured, checkpoint = _measured(settings, scenario, changes, fabric, out, workers)
        cluster = cluster_of(settings, fabric)
        lived = outcome_of(cluster, loaded.seed, histories, intervals or out is not None)
        outcome = replace(lived, measured=measured, checkpoint=checkpoint)
    page = None if out is None else parts.write(name, outcome, of, out)
    if as_json:
        click.echo(json.dumps(parts.as_dict(name, outcome, of), indent=1))
    else:
        _print(name, outcome)
        if page is not None:
            click.echo(f"page: {page} (also {parts.JSON_FILE})")


def _measured(
    settings: ClusterSection,
    scenario: Path,
    changes: Sequence[Change],
    fabric: FabricSpec,
    out: Path | None,
    workers: int | None,
) -> tuple[ClusterSection, list[MeasuredFailure], MeasuredCheckpoint | None]:
    """Return the section with measured effects and times, and what was measured; runs are kept in `out` only."""
    if not settings.is_to_be_measured:
        return settings, [], None
    from weft.commands.trial_progress import trial_progress
    from weft.drills.checkpoint_times import measured_times
    from weft.drills.part_failures import measured_section

    with TemporaryDirectory() as temporary, trial_progress("measurement") as progress:
        runs = Path(temporary) if out is None else out / "runs"
        settings, failures = measured_section(settings, scenario, changes, fabric, runs / "failures", workers, progress)
        settings, checkpoint = measured_times(settings, scenario, changes, runs / "checkpoint", workers, progress)
    return settings, failures, checkpoint


def _print(name: str, outcome: Outcome) -> None:
    from weft.goodput import report as parts
    from weft.results.figure_tables import print_report_table
    from weft.system.consoles import make_console

    console = make_console()
    cluster = outcome.cluster
    click.echo(
        f"{name}: {cluster.accelerators:,} accelerators in {cluster.hosts:,} hosts, {cluster.spares:,} spare hosts, "
        f"{parts.duration(cluster.duration_s)}"
    )
    tables = [parts.failures_table(outcome), parts.spent_table(outcome)]
    if outcome.checkpoint:
        tables.insert(1, parts.checkpoint_table(outcome.checkpoint))
    if outcome.measured:
        tables.insert(1, parts.measured_table(outcome))
    if outcome.intervals:
        tables.append(parts.intervals_table(outcome))
    for table in tables:
        print_report_table(console, table, ["failure", "effect", "what", "fails", "then", "checkpoint"])
    click.echo(f"\n{parts.words(outcome)}.")
    for note in parts.notes(outcome):
        click.echo(f"· {note}")
