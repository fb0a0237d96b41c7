"""`weft init`: a scenario to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from weft.errors import BadInputError


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="scenario.yaml")
def init(file: Path) -> None:
    """Write a small commented scenario into FILE (scenario.yaml), which runs as it is.

    A file that is there is left alone.
    """
    text = resources.files("weft").joinpath("templates/scenario.yaml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text.replace("FILE", str(file)))
    except FileExistsError:
        raise BadInputError("is there already; name another file", place=file) from None
    click.echo(f"wrote {file}; weft run {file}")
