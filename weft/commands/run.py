"""`weft run`: a scenario from beginning to end."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from weft.cli import EXISTING_FILE
from weft.commands.scenario_options import override, scenario_options


@click.command()
@click.argument("scenario", type=EXISTING_FILE)
@scenario_options
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of results.json; default runs/…",
)
@click.option(
    "--pcap",
    "pcap_directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for a capture of every host's NICs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of tables.")
def run(
    scenario: Path, out: Path | None, pcap_directory: Path | None, as_json: bool, **overrides: object
) -> int:
    """Build SCENARIO's fabric, run its traffic, check the results, take everything down.

    Exits with 1 if a result is not what NumPy computes.
    """
    from weft.results import show_run
    from weft.run import result_directory, run_scenario
    from weft.scenario import load_scenario

    chosen = override(load_scenario(scenario), overrides)
    directory = result_directory(chosen, out)
    # Now, so that a directory that cannot be written is not found out at the end of the run.
    directory.mkdir(parents=True, exist_ok=True)
    try:
        result = run_scenario(chosen, lambda text: click.echo(f"· {text}", err=True), pcap_directory)
    except BaseException:
        # Nothing of ours where nothing was found; a directory that holds something stays.
        with contextlib.suppress(OSError):
            directory.rmdir()
        raise
    path = result.save(directory)
    show_run(result, as_json)
    if not as_json:
        times = result.wall_times_s
        click.echo(
            f"\nfabric up in {times['fabric_up']:.1f} s, first collective done after "
            f"{times['first_collective_done']:.1f} s, all in {times['all']:.1f} s; results in {path}"
        )
    return 0 if result.ok else 1
