"""`weft clean`: remove what an interrupted lab left."""

from __future__ import annotations

import click

from weft.cache import remove_cache
from weft.clocks.real import lab_state
from weft.clocks.virtual.exec.leftovers import end_left_programs
from weft.system.scratch import remove_abandoned


@click.command()
@click.option("--force", is_flag=True, help="End a lab that still runs, too.")
@click.option("--cache", is_flag=True, help="Empty the cache of compiled programs instead.")
def clean(force: bool, cache: bool) -> None:
    """Remove the interfaces, processes and files of an interrupted lab, and what killed virtual runs left.

    Only what the lab's state file lists is touched: other Mininet networks and interfaces stay as they are. Of virtual
    runs it is their scratch directories (weft-… in $TMPDIR), once their processes are gone, and the programs of their
    items exec.
    """
    if cache and force:
        raise click.UsageError("--force ends a lab, which --cache does not touch")
    if cache:
        removed = [str(file) for file in remove_cache()]
    else:
        removed = lab_state.clean(force=force) + [f"process {pid}" for pid in end_left_programs()]
        removed += [f"directory {path}" for path in remove_abandoned()]
    for item in removed:
        click.echo(f"removed {item}")
    if not removed:
        click.echo("nothing to clean")
