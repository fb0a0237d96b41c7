"""The `weft compile` command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compiler.diagnostics import CompileError, Diagnostics
from compiler.front import check_file

EXIT_BAD_INPUT = 3


def _defines(values: tuple[str, ...]) -> dict[str, str]:
    pairs = (value.partition("=") for value in values)
    return {name: text if found else "1" for name, found, text in pairs}


@click.command("compile")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-I", "include_paths", multiple=True, type=click.Path(path_type=Path), help="Folder of included files."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
def compile_command(source: Path, include_paths: tuple[Path, ...], defines: tuple[str, ...]) -> None:
    """Check the P4_16 program SOURCE (v1model)."""
    diagnostics = Diagnostics()
    try:
        check_file(source, include_paths=include_paths, defines=_defines(defines), diagnostics=diagnostics)
    except CompileError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_BAD_INPUT)
    for warning in diagnostics.warnings:
        click.echo(warning.render(), err=True)
