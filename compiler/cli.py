"""The `weft compile` command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from compiler.diagnostics import CompileError, Diagnostics
from compiler.driver import CompileResult, compile_file
from compiler.dump import STAGES, dump_ir, dump_tokens, dump_tree
from compiler.front import check_file

EXIT_BAD_INPUT = 3


def _defines(values: tuple[str, ...]) -> dict[str, str]:
    pairs = (value.partition("=") for value in values)
    return {name: text if found else "1" for name, found, text in pairs}


@click.command("compile")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where the BMv2 JSON goes."
)
@click.option(
    "--p4info", type=click.Path(dir_okay=False, path_type=Path), help="P4Info; *.bin is binary, else text."
)
@click.option(
    "-I", "include_paths", multiple=True, type=click.Path(path_type=Path), help="Folder of included files."
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
@click.option("--dump", type=click.Choice(STAGES), help="Print what a stage made, to standard output.")
def compile_command(
    source: Path,
    output: Path | None,
    p4info: Path | None,
    include_paths: tuple[Path, ...],
    defines: tuple[str, ...],
    dump: str | None,
) -> None:
    """Compile the P4_16 program SOURCE (v1model) to BMv2 JSON and P4Info."""
    macros = _defines(defines)
    try:
        if dump in ("tokens", "ast"):
            _dump_front(source, include_paths, macros, dump)
            return
        result = compile_file(source, include_paths=include_paths, defines=macros)
    except CompileError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_BAD_INPUT)
    for warning in result.warnings:
        click.echo(warning.render(), err=True)
    if dump == "ir":
        click.echo(dump_ir(result.lowered))
    elif dump == "json":
        click.echo(result.json_text(), nl=False)
    _write(result, output, p4info)


def _dump_front(source: Path, include_paths: tuple[Path, ...], macros: dict[str, str], stage: str) -> None:
    diagnostics = Diagnostics()
    checked = check_file(source, include_paths=include_paths, defines=macros, diagnostics=diagnostics)
    click.echo(dump_tokens(checked.tokens) if stage == "tokens" else dump_tree(checked.tree))


def _write(result: CompileResult, output: Path | None, p4info: Path | None) -> None:
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(result.json_text(), encoding="utf-8")
    if p4info is not None:
        p4info.parent.mkdir(parents=True, exist_ok=True)
        if p4info.suffix == ".bin":
            p4info.write_bytes(result.p4info_bytes())
        else:
            p4info.write_text(result.p4info_text(), encoding="utf-8")
