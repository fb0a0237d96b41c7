"""`weft schedule`: jobs that arrive over time, placed on a cluster by several policies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError

if TYPE_CHECKING:
    from weft.scenario import Change
    from weft.scenario.model import Scenario
    from weft.scenario.schedule import ScheduleSection
    from weft.scheduling import Cluster, Comparison
    from weft.scheduling.spread import Slowdowns


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="How often the jobs are drawn; results are means, with 95 % confidence intervals.",
)
@click.option("--workers", type=click.IntRange(1), help="Packet-level runs at a time; default: as many as processors.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write schedule.html and schedule.json there. Packet-level runs are kept there, else in runs/schedule-NAME.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@set_option
def schedule(
    scenario: Path, seeds: int, workers: int | None, out: Path | None, as_json: bool, assignments: tuple[str, ...]
) -> None:
    """Place jobs that arrive over time on a cluster, by each of several policies.

    SCENARIO has a section `schedule` (docs/scheduling.md); its traffic does not count. The cluster is its fabric, or
    one that a file of Slurm or of Kueue describes. Prints utilisation, waiting times and fragmentation by policy.
    """
    from weft.scenario.network_file import load_fabric
    from weft.scenario.schedule import schedule_section
    from weft.scheduling import compare
    from weft.scheduling import report as parts

    changes = assignments_of("--set", assignments)
    loaded = load_fabric(scenario, changes)
    name = loaded.name or scenario.stem
    with loaded.places.locating():
        settings = schedule_section(loaded)
        if settings is None:
            raise BadInputError(
                "the scenario has no jobs to place",
                place="schedule",
                valid="a section, such as {sizes: [{accelerators: 1}]}",
            )
        cluster = _cluster(loaded, settings)
        folder = out or Path("runs") / f"schedule-{scenario.stem}"
        slowdowns = _slowdowns(loaded, settings, cluster, scenario, changes, folder, workers)
        comparison = compare(cluster, settings, slowdowns, loaded.seed, seeds)
    page = None if out is None else parts.write(name, comparison, slowdowns, out)
    if as_json:
        click.echo(json.dumps(parts.as_dict(name, comparison, slowdowns), indent=1))
    else:
        _print(name, comparison, slowdowns)
        if page is not None:
            click.echo(f"page: {page} (also {parts.JSON_FILE})")


def _cluster(loaded: Scenario, settings: ScheduleSection) -> Cluster:
    from weft.scenario.topology import build_topology
    from weft.scheduling import cluster_of_fabric
    from weft.scheduling.imports import read_cluster

    if settings.topology is not None:
        return read_cluster(settings.topology, settings.nodes, settings.accelerators_per_host)
    return cluster_of_fabric(build_topology(loaded.fabric), settings.accelerators_per_host)


def _slowdowns(
    loaded: Scenario,
    settings: ScheduleSection,
    cluster: Cluster,
    scenario: Path,
    changes: Sequence[Change],
    folder: Path,
    workers: int | None,
) -> Slowdowns:
    """Return what spread costs: nothing, the scenario's factors, or what packets on its fabric say."""
    from weft.commands.trial_progress import trial_progress
    from weft.scenario.topology import build_topology
    from weft.scheduling import cluster_of_fabric
    from weft.scheduling.measured import measure
    from weft.scheduling.spread import GivenSlowdowns, NoSlowdown
    from weft.scheduling.workload import workload_of
    from weft.trials import TrialRunner

    own = settings.slowdown
    if own is None:
        return NoSlowdown()
    if own.spread is not None:
        return GivenSlowdowns(own.communication, own.spread, cluster)
    # Jobs that no draw has, but another could have, are measured, too: all sizes of the scenario.
    sizes = [each.accelerators for each in settings.sizes] or [
        job.accelerators for job in workload_of(settings, cluster, (loaded.seed,)).jobs
    ]
    hosts = {-(-size // cluster.accelerators_per_host) for size in sizes}
    fabric = cluster_of_fabric(build_topology(loaded.fabric))
    with trial_progress("measurement") as progress:
        return measure(
            (scenario, changes),
            own,
            fabric,
            cluster.accelerators_per_host,
            hosts,
            TrialRunner(folder, workers, progress),
        )


def _print(name: str, comparison: Comparison, slowdowns: Slowdowns) -> None:
    from rich.markup import escape

    from weft.results.figure_tables import print_figures
    from weft.scheduling import report as parts
    from weft.system.consoles import make_console

    console = make_console()
    click.echo(f"{name}: {parts.words(comparison)}")
    for table in parts.tables(comparison, slowdowns):
        rows = [[str(cell) for cell in row] for row in table.rows]
        print_figures(console, escape(table.title), list(table.columns), rows, ["policy", "spread", "what it does"])
    for note in parts.notes(comparison, slowdowns):
        click.echo(f"· {note}")
