"""`weft new`: a folder to start from, with a P4 program, a scenario, a controller and a test."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import click

from weft.errors import BadInputError
from weft.quantities.units import shown

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}\Z")
_PLACEHOLDER = "NAME"
_IN = ("README.md", "scenario.yaml")
"""Files that have the project's name in them."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="NAME")
def new(folder: Path) -> None:
    """Make the folder NAME with a P4 program of your own, a scenario, a controller, a test and a README.

    NAME is of a-z, 0-9 and -; it may be the end of a path. A folder that is there is left alone.
    """
    if not _NAME.match(folder.name):
        raise BadInputError(
            f"{shown(folder.name)} is no name of a project",
            valid="up to 41 of a-z, 0-9 and -, such as my-switch",
        )
    try:
        folder.mkdir()
    except FileExistsError:
        raise BadInputError(f"{folder}: is there already; name another folder") from None
    except OSError as error:
        raise BadInputError(f"{folder}: cannot be made: {error.strerror}") from None
    for source in sorted(resources.files("weft").joinpath("templates/project").iterdir(), key=lambda each: each.name):
        if not source.is_file():
            continue
        text = source.read_text(encoding="utf-8")
        if source.name in _IN:
            text = text.replace(_PLACEHOLDER, folder.name)
        (folder / source.name).write_text(text, encoding="utf-8")
        click.echo(f"wrote {folder / source.name}")
    click.echo(f"now: cd {folder}; weft run scenario.yaml; pytest")
