"""`weft cost`: what fabrics cost and draw, by a table of assumed prices."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weft.cli import EXISTING_FILE, SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError, translated

if TYPE_CHECKING:
    from weft.cost import CostFigures, PriceTable
    from weft.cost.work import WorkCost
    from weft.scenario import Change, Scenario
    from weft.topologies import FabricSpec

_HISTORIES = 20
_SCENARIO_SUFFIXES = (".yaml", ".yml")


@click.command()
@click.argument("files", metavar="FILE…", type=SCENARIO_FILE, nargs=-1)
@click.option("--table", is_flag=True, help="Write the shipped table of prices, to be edited, and do nothing else.")
@click.option("--prices", type=EXISTING_FILE, help="A table of prices in place of the shipped one.")
@click.option(
    "--assume",
    "assumptions",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any key of the table, such as energy.years=5 or layout.accelerators_per_rack=16; several may be given.",
)
@click.option("--accelerator", metavar="NAME", help="Of the table; shows the network's share of the whole.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Results of weft run for FILE, one for each FILE in their order: prices steps, tokens and useful hours.",
)
@click.option(
    "--goodput",
    "histories",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="What weft goodput FILE --out DIR has found, one for each FILE: needed where failures are measured.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw price and power against bisection bandwidth: an .svg, .png or .html file.",
)
@set_option
def cost(
    files: tuple[Path, ...],
    table: bool,
    prices: Path | None,
    assumptions: tuple[str, ...],
    accelerator: str | None,
    runs: tuple[Path, ...],
    histories: tuple[Path, ...],
    as_json: bool,
    plot: Path | None,
    assignments: tuple[str, ...],
) -> None:
    """Print the bill of fabrics: switches, NICs, cables; price and power, capital and energy over years.

    FILE is a scenario, lab:NAME, or a file that holds a topology (node-link JSON, GraphML, topology.json of p4lang's
    tutorials, p4app.json of p4-utils). Several are compared.
    Prices are assumptions that you replace by your own (docs/cost.md), no quotation. With --run, what a run did
    (training, inference) is priced, too.
    """
    from weft.cost import cost_figures, read_prices, shipped_table_text
    from weft.cost.printing import as_dict, caption, print_bill, print_comparison, print_work
    from weft.scenario.cluster import cluster_section
    from weft.system.consoles import make_console

    if table:
        if files or prices or assumptions or runs or histories:
            raise click.UsageError("--table writes the shipped table: give nothing else with it")
        click.echo(shipped_table_text(), nl=False)
        return
    if not files:
        raise click.UsageError("give a scenario, lab:NAME, or a topology's file")
    for option, given in (("--run", runs), ("--goodput", histories)):
        if given and len(given) != len(files):
            raise click.UsageError(f"{len(given)} {option} for {len(files)} files: give one for each, in their order")
    _require_picture(plot)
    chosen = read_prices(prices, assignments_of("--assume", assumptions))
    changes = assignments_of("--set", assignments)
    found = [_fabric_of(file, changes) for file in files]
    fabrics = _named([(name, fabric) for name, fabric, _ in found], files)
    costs, works = [], []
    for number, file in enumerate(files):
        (name, fabric), scenario = fabrics[number], found[number][2]
        with translated(BadInputError, BadInputError, place=file):
            per_endpoint = cluster_section(scenario).accelerators_per_endpoint(fabric.ranks_per_host)
            kept_share = _kept_share(scenario, fabric, histories[number] if histories else None)
            costs.append(cost_figures(name, fabric, chosen, accelerator, per_endpoint, kept_share))
        if runs:
            works.append(_work_costs(runs[number], scenario, fabric, costs[-1], per_endpoint))
    if as_json:
        click.echo(json.dumps(as_dict(costs, chosen, works), indent=1))
    else:
        console = make_console()
        if len(costs) == 1:
            print_bill(console, costs[0], chosen, _scale_up_note(fabrics[0][1]))
        else:
            print_comparison(console, costs, chosen)
        for each, of_run in zip(costs, works, strict=bool(works)):
            print_work(console, each.name, of_run, chosen)
        console.print(caption(chosen), soft_wrap=True, markup=False)
    if plot is not None:
        _draw(plot, costs, chosen)
        click.echo(f"wrote {plot}", err=as_json)


def _work_costs(
    run: Path, scenario: Scenario, fabric: FabricSpec, cost: CostFigures, per_endpoint: int
) -> list[WorkCost]:
    """Return the costs of what a run of the scenario did."""
    from weft.cost.matching import results_of_run, work_of_run
    from weft.cost.work import work_cost

    found = work_of_run(results_of_run(run, scenario, fabric), run)
    return [work_cost(each, cost, per_endpoint) for each in found]


def _kept_share(scenario: Scenario, fabric: FabricSpec, found: Path | None) -> float | None:
    """Return the share of kept work of a scenario that says how often the fabric's parts fail, or as was `found`."""
    from weft.goodput import cluster_of, outcome_of
    from weft.scenario.cluster import cluster_section

    settings = cluster_section(scenario)
    if found is not None:
        from weft.goodput.kept import kept_share_of

        return kept_share_of(found, scenario, fabric)
    if not settings.failures:
        return None
    return outcome_of(cluster_of(settings, fabric), scenario.seed, _HISTORIES).goodput.mean


def _fabric_of(file: Path, changes: Sequence[Change]) -> tuple[str, FabricSpec, Scenario]:
    """Return the name and the fabric of a scenario, or of a topology's file, and the scenario."""
    from weft.scenario import apply_changes, parse_scenario
    from weft.scenario.network_file import load_fabric
    from weft.scenario.topology import build_topology
    from weft.topologies.networks import is_network_file

    if file.suffix in _SCENARIO_SUFFIXES or is_network_file(file):
        scenario = load_fabric(file, changes)
        name = scenario.name or file.stem
    else:
        tree = {"fabric": {"path": str(file.resolve())}}
        options = apply_changes(tree, changes)
        scenario = parse_scenario(tree, str(file), units_required=True, options=options)
        name = file.stem
    with scenario.places.locating():
        return name, build_topology(scenario.fabric), scenario


def _named(fabrics: Sequence[tuple[str, FabricSpec]], files: Sequence[Path]) -> list[tuple[str, FabricSpec]]:
    """Name fabrics that share a name after their files, with the folder where file names are the same."""
    times = Counter(name for name, _ in fabrics)
    stems = Counter(file.stem for file in files)
    return [
        (name if times[name] == 1 else file.stem if stems[file.stem] == 1 else str(file), fabric)
        for (name, fabric), file in zip(fabrics, files, strict=True)
    ]


def _scale_up_note(fabric: FabricSpec) -> str:
    if fabric.scale_up is None:
        return ""
    return (
        f"The scale-up links of the hosts' {fabric.scale_up.ranks_per_host} ranks are not priced: "
        "they are part of the server."
    )


def _require_picture(plot: Path | None) -> None:
    """Check the file's suffix before anything is computed. Raises BadInputError."""
    from weft.topologies import TopologyError
    from weft.topologies.drawings import require_picture_suffix

    if plot is not None:
        with translated(TopologyError, BadInputError):
            require_picture_suffix(plot)


def _draw(plot: Path, costs: Sequence[CostFigures], table: PriceTable) -> None:
    from weft.cost.chart import trade_off_svg
    from weft.system.writing import written_whole
    from weft.topologies import TopologyError
    from weft.topologies.drawings import write_picture

    with translated(TopologyError, BadInputError), written_whole(plot) as partial:
        write_picture(trade_off_svg(costs, table), partial, "Cost of fabrics")
