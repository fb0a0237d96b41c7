"""`weft power`: what racks draw over the time of a run's jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from weft.cli import EXISTING_FILE, SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError, translated

if TYPE_CHECKING:
    from weft.cost.job_power import JobPower
    from weft.results.kinds import ResultKind
    from weft.scenario import Scenario

_MOST_CURVES = 7
"""Racks in a picture."""


@click.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "--run",
    "run",
    required=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Results of weft run for SCENARIO.",
)
@click.option("--accelerator", metavar="NAME", required=True, help="Of the table of prices; with watts by state.")
@click.option("--prices", type=EXISTING_FILE, help="A table of prices and watts in place of the shipped one.")
@click.option(
    "--assume",
    "assumptions",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of the table, such as accelerators.H100.states.idle=60; several may be given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw the power of racks over time, of the run's first job: an .svg, .png or .html file.",
)
@set_option
def power(
    scenario: Path,
    run: Path,
    accelerator: str,
    prices: Path | None,
    assumptions: tuple[str, ...],
    as_json: bool,
    plot: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Show the power of racks over the time of a run's jobs: peak, mean, swing, ramps, energy of a step.

    Training steps (model) and collectives have one. Watts are assumptions that you replace by your own
    (docs/power.md).
    """
    from weft.cost.job_power import job_powers
    from weft.cost.matching import results_of_run
    from weft.cost.power_printing import as_dict, print_power
    from weft.cost.prices import read_prices
    from weft.scenario import load_scenario
    from weft.scenario.cluster import cluster_section
    from weft.scenario.topology import build_topology
    from weft.system.consoles import make_console
    from weft.topologies import TopologyError
    from weft.topologies.drawings import require_picture_suffix

    if plot is not None:
        with translated(TopologyError, BadInputError):
            require_picture_suffix(plot)
    table = read_prices(prices, assignments_of("--assume", assumptions))
    states = table.states_of(accelerator)
    loaded = load_scenario(scenario, assignments_of("--set", assignments))
    with loaded.places.locating():
        fabric = build_topology(loaded.fabric)
        per_endpoint = cluster_section(loaded).accelerators_per_endpoint(fabric.ranks_per_host)
    results = results_of_run(run, loaded, fabric)
    found = list(job_powers(run, results, fabric, _placed(loaded), table, states, per_endpoint))
    if as_json:
        click.echo(json.dumps(as_dict(found, accelerator, table), indent=1))
    else:
        print_power(make_console(), found, accelerator, table)
    if plot is not None:
        _draw(plot, found[0])
        click.echo(f"wrote {plot}", err=as_json)


def _placed(scenario: Scenario) -> list[tuple[ResultKind[Any], Sequence[int] | None]]:
    """Return the kind of results and the ranks of each item that names or may name ranks."""
    from weft.run.traffic_kinds.base import items_of

    parts = [part for item in items_of(scenario) for _, part in item.with_parts("")]
    return [(each.results, getattr(each, "ranks", None)) for each in parts if each.results is not None]


def _draw(plot: Path, found: JobPower) -> None:
    """Draw the racks' power over time, and all racks' together if there are several."""
    import numpy as np

    from weft.cost.power_printing import rack_name
    from weft.quantities.units import PS_PER_MS
    from weft.report.plots import Plot, PlotCurve
    from weft.system.writing import written_whole
    from weft.topologies import TopologyError
    from weft.topologies.drawings import write_picture

    trace = found.trace
    named = {f"rack {rack_name(rack)}": power for rack, power in list(trace.racks.items())[:_MOST_CURVES]}
    if len(trace.racks) > 1:
        named = {"all racks": trace.total, **named}
    curves = tuple(
        PlotCurve(
            name,
            np.append(power.since_ps, power.end_ps) / PS_PER_MS,
            np.append(power.watts, power.watts[-1]) / 1e3,
        )
        for name, power in named.items()
    )
    title = f"Power of {found.name}"
    drawn = Plot(title, "time (ms)", "power (kW)", curves, "step before")
    with translated(TopologyError, BadInputError), written_whole(plot) as partial:
        write_picture(drawn.svg(), partial, title)
