"""`weft calibrate`: fit a scenario's costs to times that nccl-tests measured."""

from __future__ import annotations

import json
from pathlib import Path

import click

from weft.calibration.logs import PROGRAMS
from weft.cli import EXISTING_FILE, SCENARIO_FILE
from weft.commands.scenario_options import assignments_of, set_option
from weft.errors import BadInputError, translated
from weft.quantities.units import parse_size_bytes


@click.command()
@click.argument("logs", metavar="LOG…", type=EXISTING_FILE, nargs=-1, required=True)
@click.option("--scenario", type=SCENARIO_FILE, required=True, help="The fabric and the collectives that ran on it.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the scenario with the fitted values; its comments stay.",
)
@click.option(
    "--hold-out",
    default="1/3",
    show_default=True,
    metavar="SIZES|1/N|none",
    help="Sizes that are predicted, not fitted: these, or every N-th one between the smallest and the largest.",
)
@click.option(
    "--keys",
    metavar="KEY,KEY…",
    default="",
    help="Keys to fit, such as nic.per_message_overhead,fabric.scale_up.rate; default: overheads of NICs, and "
    "scale-up links if the fabric has them.",
)
@click.option("--least", default="1", metavar="SIZE", show_default=True, help="Smallest size that is compared.")
@click.option(
    "--most", default="16M", metavar="SIZE", show_default=True, help="Largest size: a run has each of its packets."
)
@click.option("--in-place", is_flag=True, help="Take the times in place, not those out of place.")
@click.option(
    "--collective",
    type=click.Choice(sorted(PROGRAMS.values())),
    help="What the logs measured, where neither they nor their names say it.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw measured and modelled times by size: an .svg, .png or .html file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@set_option
def calibrate(
    logs: tuple[Path, ...],
    scenario: Path,
    output: Path | None,
    hold_out: str,
    keys: str,
    least: str,
    most: str,
    in_place: bool,
    collective: str | None,
    plot: Path | None,
    as_json: bool,
    assignments: tuple[str, ...],
) -> None:
    """Fit overheads of hosts and links within hosts to the times that nccl-tests or rccl-tests printed.

    LOG is the output of all_reduce_perf, all_gather_perf, reduce_scatter_perf, alltoall_perf, broadcast_perf or
    reduce_perf. Each table is compared with the scenario's collective of as many ranks, run under the virtual clock.
    Some sizes are held out and predicted. Residuals are printed for all sizes, however poor the fit.
    """
    from weft.calibration import HoldOut, read_log
    from weft.calibration import calibrate as fit
    from weft.calibration.output import write_fitted
    from weft.calibration.printing import print_calibration
    from weft.commands.progress import make_progress
    from weft.scenario import anchor_paths, apply_changes, load_scenario, read_mapping
    from weft.system.consoles import make_console

    _require_targets(output, plot, (*logs, scenario))
    bounds = [_size(name, text) for name, text in (("--least", least), ("--most", most))]
    changes = assignments_of("--set", assignments)
    # For errors that name lines of the file; the fit itself works on plain values.
    load_scenario(scenario, changes)
    tree = read_mapping(scenario, "a scenario")
    anchor_paths(tree, scenario.parent)
    apply_changes(tree, changes)
    tables = [table for log in logs for table in read_log(log, in_place=in_place, collective=collective)]
    found = fit(
        tables,
        tree,
        str(scenario),
        keys=[key.strip() for key in keys.split(",")] if keys else (),
        hold_out=HoldOut.of(hold_out),
        least_bytes=bounds[0],
        most_bytes=bounds[1],
        progress=make_progress(),
    )
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=1))
    else:
        print_calibration(make_console(), found)
    if output is not None:
        write_fitted(scenario, changes, found.fitted(), output)
        click.echo(f"wrote {output}", err=as_json)
    if plot is not None:
        from weft.calibration.chart import calibration_svg
        from weft.system.writing import written_whole
        from weft.topologies import TopologyError
        from weft.topologies.drawings import write_picture

        with translated(TopologyError, BadInputError), written_whole(plot) as partial:
            write_picture(calibration_svg(found), partial, "Measured and modelled times")
        click.echo(f"wrote {plot}", err=as_json)


def _size(option: str, text: str) -> int:
    with translated(ValueError, BadInputError, place=option):
        return parse_size_bytes(text)


def _require_targets(output: Path | None, plot: Path | None, inputs: tuple[Path, ...]) -> None:
    """Check what is written before anything runs. Raises BadInputError."""
    from weft.topologies import TopologyError
    from weft.topologies.drawings import require_picture_suffix

    if plot is not None:
        with translated(TopologyError, BadInputError):
            require_picture_suffix(plot)
    read = {path.resolve() for path in inputs}
    for option, path in (("--output", output), ("--plot", plot)):
        if path is not None and not path.parent.is_dir():
            raise BadInputError(f"{path.parent} is no directory", place=option)
        if path is not None and path.resolve() in read:
            raise BadInputError(f"{path} is read by the same command: name another file", place=option)
