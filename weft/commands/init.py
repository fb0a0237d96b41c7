"""`weft init`: a scenario to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from weft.errors import BadInputError


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="scenario.yaml")
@click.option("--preset", metavar="NAME", help="Start from a preset of `weft presets`.")
def init(file: Path, preset: str | None) -> None:
    """Write a small commented scenario into FILE (scenario.yaml), which runs as it is.

    A file that is there is left alone.
    """
    text = _small(file) if preset is None else _with_preset(preset, file)
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise BadInputError("is there already; name another file", place=file) from None
    click.echo(f"wrote {file}; weft run {file}")


def _small(file: Path) -> str:
    text = resources.files("weft").joinpath("templates/scenario.yaml").read_text(encoding="utf-8")
    return text.replace("FILE", str(file))


def _with_preset(name: str, file: Path) -> str:
    from weft.scenario.fabric_presets import example_text, fabric_preset

    return example_text(fabric_preset(name), str(file))
