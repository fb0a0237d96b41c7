"""`weft goodput`: what failures, checkpoints and restarts leave of a cluster's time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError

if TYPE_CHECKING:
    from weft.goodput import Outcome


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
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@set_option
def goodput(
    scenario: Path, histories: int, intervals: bool, out: Path | None, as_json: bool, assignments: tuple[str, ...]
) -> None:
    """Live the days of a cluster that trains: failures, checkpoints, restarts, hosts that are replaced.

    SCENARIO has a section `cluster` (docs/goodput.md); its traffic does not count, and nothing is sent. Prints what the
    time goes to, next to published formulas.
    """
    from weft.goodput import cluster_of, outcome_of
    from weft.goodput import report as parts
    from weft.scenario.cluster import cluster_section
    from weft.scenario.network_file import load_fabric
    from weft.scenario.topology import build_topology

    loaded = load_fabric(scenario, assignments_of("--set", assignments))
    name = loaded.name or scenario.stem
    with loaded.places.locating():
        settings = cluster_section(loaded)
        if not settings.failures:
            raise BadInputError(
                "the scenario says of no part how often it fails",
                place="cluster.failures",
                valid="a list, such as [{part: accelerator, mtbf: 50000h}]",
            )
        cluster = cluster_of(settings, build_topology(loaded.fabric))
        outcome = outcome_of(cluster, loaded.seed, histories, intervals or out is not None)
    page = None if out is None else parts.write(name, outcome, out)
    if as_json:
        click.echo(json.dumps(parts.as_dict(name, outcome), indent=1))
    else:
        _print(name, outcome)
        if page is not None:
            click.echo(f"page: {page} (also {parts.JSON_FILE})")


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
    if outcome.intervals:
        tables.append(parts.intervals_table(outcome))
    for table in tables:
        print_report_table(console, table, ["failure", "effect", "what"])
    click.echo(f"\n{parts.words(outcome)}.")
    for note in parts.notes(outcome):
        click.echo(f"· {note}")
