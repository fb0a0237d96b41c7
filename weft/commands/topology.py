"""`weft topology`: look at the fabric that a scenario describes, without building it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from weft.cli import SCENARIO_FILE
from weft.errors import BadInputError, translated
from weft.scenario.network_file import load_fabric
from weft.scenario.topology import build_topology
from weft.system.writing import written_whole
from weft.topologies import FabricSpec, TopologyError, as_dict, describe, draw
from weft.topologies.files.writing import WRITTEN_FORMATS, written


@click.group()
def topology() -> None:
    """Show, draw or export a scenario's fabric."""


_CONFIGURATION = click.option(
    "--configuration", metavar="NAME", help="Of the circuits, in place of the one at the start."
)


def _fabric(scenario: Path, configuration: str | None = None) -> FabricSpec:
    chosen = load_fabric(scenario)
    with chosen.places.locating():
        fabric = build_topology(chosen.fabric)
    for note in chosen.fabric.notes:
        click.echo(f"note: {note}", err=True)
    with translated(TopologyError, BadInputError, place="--configuration"):
        return fabric if configuration is None else fabric.in_configuration(configuration)


@topology.command()
@click.argument("scenario", type=SCENARIO_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--host", "inside", is_flag=True, help="Show a host's inside, as `nvidia-smi topo -m` does.")
@_CONFIGURATION
def show(scenario: Path, as_json: bool, inside: bool, configuration: str | None) -> None:
    """Print metrics (hops, bisection bandwidth, oversubscription, shortest paths), switches, ports and addresses."""
    if inside:
        _show_host(scenario, as_json)
        return
    fabric = _fabric(scenario, configuration)
    click.echo(json.dumps(as_dict(fabric), indent=1) if as_json else describe(fabric))


def _show_host(scenario: Path, as_json: bool) -> None:
    from weft.scenario.host import host_routes  # it needs to be read for this option alone
    from weft.topologies.hosts.views import as_dict, described

    chosen = load_fabric(scenario)
    with chosen.places.locating():
        routes = host_routes(build_topology(chosen.fabric), chosen)
    if routes is None:
        raise BadInputError("host: the scenario does not say what hosts have inside", valid="host: {layout: …}")
    click.echo(json.dumps(as_dict(routes), indent=1) if as_json else described(routes))


@topology.command("draw")
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="An .svg, .png or .html file.",
)
@_CONFIGURATION
def draw_command(scenario: Path, output: Path, configuration: str | None) -> None:
    """Draw the fabric as its kind of topology is drawn: tiers, rings, groups; more than 1,024 cables in groups."""
    with translated(TopologyError, BadInputError):
        fabric = _fabric(scenario, configuration)
        with written_whole(output) as partial:
            draw(fabric, partial)
    click.echo(f"wrote {output}")


@topology.command()
@click.argument("format_name", metavar="FORMAT", type=click.Choice(WRITTEN_FORMATS))
@click.argument("scenario", type=SCENARIO_FILE)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file instead of standard output.",
)
def export(format_name: str, scenario: Path, output: Path | None) -> None:
    """Write the graph for other tools, and for `fabric: {path: …}`: node_link is NetworkX's JSON, or graphml."""
    fabric = _fabric(scenario)
    text = written(fabric, format_name)
    if fabric.storage_plane is not None:
        click.echo(
            f"weft: plane {fabric.storage_plane}, the storage network, is in the file as the other planes are; a "
            "scenario with this file would use it for all traffic",
            err=True,
        )
    if output is None:
        click.echo(text, nl=False)
        return
    with written_whole(output) as partial:
        partial.write_text(text, encoding="utf-8")
    click.echo(f"wrote {output}")
