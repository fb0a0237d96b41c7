"""`weft labs`: the labs that ship with Weft, and copies of them to work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from weft.errors import BadInputError
from weft.system.shipped_labs import LAB_PREFIX, find_lab, shipped_labs


@click.group(invoke_without_command=True)
@click.pass_context
def labs(context: click.Context) -> None:
    """List the labs that ship with Weft; each has a page, README.md, in its folder.

    `weft run lab:NAME` runs one as it is, `weft labs copy NAME` makes a copy to change.
    """
    if context.invoked_subcommand is not None:
        return
    table = Table(box=None, pad_edge=False)
    for column in ("lab", "what it shows", "files"):
        table.add_column(column, overflow="fold")
    for lab in shipped_labs():
        table.add_row(LAB_PREFIX + lab.name, lab.title, ", ".join(lab.scenarios))
    Console().print(table)


@labs.command()
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path), required=False)
def copy(name: str, folder: Path | None) -> None:
    """Copy the lab NAME to FOLDER (default: a folder of its name), which must not exist."""
    lab = find_lab(name.removeprefix(LAB_PREFIX))
    target = folder or Path(lab.name)
    if target.exists():
        raise BadInputError(f"{target} exists already; give another folder: weft labs copy {lab.name} FOLDER")
    shutil.copytree(lab.folder, target, ignore=shutil.ignore_patterns("__pycache__"))
    click.echo(f"{target}: read {target / 'README.md'}; weft run {target / lab.scenarios[0]}")
