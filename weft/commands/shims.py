"""`weft shims`: Weft's tools by the names that p4lang's exercises and courses call."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def shims(folder: Path) -> None:
    """Write launchers to DIR: p4c, p4c-bm2-ss, simple_switch_grpc, simple_switch_CLI, python3, python, all Weft's.

    Prints the line that puts them on a shell's PATH: eval "$(weft shims DIR)". DIR/python has the Python modules that
    controllers import. Files that `weft shims` has not written are left alone.
    """
    from weft.shims.writing import environment_line, write_shims

    for path in write_shims(folder):
        click.echo(f"wrote {path}", err=True)
    click.echo(environment_line(folder))
