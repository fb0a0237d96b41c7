"""`weft clean`: remove what an interrupted lab left."""

from __future__ import annotations

import click

from weft import lab_state


@click.command()
@click.option("--force", is_flag=True, help="End a lab that still runs, too.")
def clean(force: bool) -> None:
    """Remove the interfaces, processes and files of an interrupted lab.

    Only what the lab's state file lists is touched: other Mininet networks and interfaces stay as they are.
    """
    removed = lab_state.clean(force=force)
    for item in removed:
        click.echo(f"removed {item}")
    if not removed:
        click.echo("nothing to clean")
