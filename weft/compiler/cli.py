"""The `weft compile` command; it takes p4c-bm2-ss's options where they mean something here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from weft.compiler.artifacts import Artifacts, compile_artifacts
from weft.compiler.report import Report
from weft.compiler.warnings.kinds import DESCRIPTIONS
from weft.compiler.warnings.policy import ALL, WarningPolicy

EXIT_BAD_INPUT = 3
DUMP_STAGES = ("tokens", "ast", "ir", "json")
MESSAGE_SUFFIXES = (".txtpb", ".txt", ".json", ".bin")
_WITH_OPTIONAL_VALUE = ("--Wdisable", "--Werror")


class CompileCommand(click.Command):
    """Takes `--Wdisable` and `--Werror` without a value, as p4c does: a value is joined to them with `=`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        return super().parse_args(ctx, [f"{each}={ALL}" if each in _WITH_OPTIONAL_VALUE else each for each in args])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the warnings."""
        with formatter.section("Warnings"):
            formatter.write_dl([(str(kind), text) for kind, text in DESCRIPTIONS.items()])


def _paths(value: str) -> list[Path]:
    return [Path(name) for name in value.split(",") if name]


def _message_files(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[Path]:
    files = [path for value in values for path in _paths(value)]
    for path in files:
        if path.suffix not in MESSAGE_SUFFIXES:
            valid = ", ".join(MESSAGE_SUFFIXES)
            raise click.BadParameter(f"the format of '{path}' is not known by its suffix (valid: {valid})")
    return files


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    names = frozenset(name for value in values for name in value.split(",") if name)
    try:
        WarningPolicy(disabled=names)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return names


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("compile", cls=CompileCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=_FILE, help="Where the BMv2 JSON goes.")
@click.option(
    "--p4info",
    "--p4runtime-files",
    "p4info_files",
    multiple=True,
    metavar="FILE[,FILE…]",
    callback=_message_files,
    help="Where P4Info goes; *.txtpb and *.txt are text, *.json JSON, *.bin binary.",
)
@click.option(
    "--p4runtime-entries-files",
    "entries_files",
    multiple=True,
    metavar="FILE[,FILE…]",
    callback=_message_files,
    help="Where the entries go that the program lists, as a P4Runtime WriteRequest; suffixes as above.",
)
@click.option(
    "-I",
    "include_paths",
    multiple=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where included files are looked for, after the folder of the file that includes them.",
)
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define a macro.")
@click.option("-U", "undefines", multiple=True, metavar="NAME", help="Undefine a predefined macro.")
@click.option("-E", "preprocess_only", is_flag=True, help="Print the preprocessed program, do not compile.")
@click.option("--dump", type=click.Choice(DUMP_STAGES), help="Print what a stage made, to standard output.")
@click.option(
    "--Wdisable",
    "disabled",
    multiple=True,
    metavar="[=NAME,…]",
    callback=_names,
    help="Leave out warnings: those named, or all.",
)
@click.option(
    "--Werror",
    "errors",
    multiple=True,
    metavar="[=NAME,…]",
    callback=_names,
    help="Make warnings errors: those named, or all.",
)
@click.option("--json-diagnostics", is_flag=True, help="Report errors and warnings as JSON, one per line.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("--no-cache", is_flag=True, help="Compile even what has been compiled before.")
@click.option("--std", "--p4v", type=click.Choice(["p4-16", "16"]), default="p4-16", help="For p4c's sake.")
@click.option("--emit-externs", is_flag=True, help="For p4c's sake: v1model has no externs to emit.")
@click.option("--target", type=click.Choice(["bmv2"]), default="bmv2", help="For p4c's sake.")
@click.option("--arch", type=click.Choice(["v1model"]), default="v1model", help="For p4c's sake.")
def compile_command(source: Path, **options: Any) -> None:
    """Compile the P4_16 program SOURCE (v1model) to BMv2 JSON and P4Info."""
    for name in ("std", "emit_externs", "target", "arch"):
        del options[name]
    printer = _MessagePrinter(options.pop("json_diagnostics"), options.pop("color"))
    policy = WarningPolicy(options.pop("disabled"), options.pop("errors"))
    macros: dict[str, str | None] = dict.fromkeys(options.pop("undefines"))
    for name, found, text in (value.partition("=") for value in options.pop("defines")):
        macros[name] = text if found else "1"
    settings = {"include_paths": options.pop("include_paths"), "defines": macros}
    output, p4info_files = options.pop("output"), options.pop("p4info_files")
    entries_files = options.pop("entries_files")
    if options["preprocess_only"] or options["dump"] in ("tokens", "ast", "ir"):
        artifacts = _dump(source, "text" if options["preprocess_only"] else options["dump"], settings, printer)
        if artifacts is None:
            return
    else:
        artifacts = _compile(source, settings, printer, use_cache=not options["no_cache"])
    warnings = policy.apply(artifacts.warnings)
    printer.print(warnings)
    if any(warning.severity == "error" for warning in warnings):
        sys.exit(EXIT_BAD_INPUT)
    if options["dump"] == "json":
        click.echo(artifacts.json_text, nl=False)
    if output is not None:
        _write(output, artifacts.json_text)
    for path in p4info_files:
        _write_message(path, artifacts.p4info_bytes, lambda: artifacts.p4info_text, artifacts.p4info_json)
    for path in entries_files:
        _write_message(path, artifacts.entries_bytes, artifacts.entries_text, artifacts.entries_json)


class _MessagePrinter:
    """Prints messages to standard error."""

    def __init__(self, as_json: bool, colour: str) -> None:
        self._as_json = as_json
        terminal = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
        self._colour = colour == "always" or (colour == "auto" and terminal)

    def print(self, reports: Iterable[Report]) -> None:
        """Print each message."""
        for report in reports:
            text = json.dumps(report.to_json()) if self._as_json else report.render(self._colour)
            click.echo(text, err=True, color=self._colour)


def _compile(source: Path, settings: dict[str, Any], printer: _MessagePrinter, *, use_cache: bool) -> Artifacts:
    try:
        return compile_artifacts(source, **settings, use_cache=use_cache)
    except Exception as error:
        _exit_if_refused(error, printer)
        raise


def _dump(source: Path, stage: str, settings: dict[str, Any], printer: _MessagePrinter) -> Artifacts | None:
    """Print a stage; returns the artifacts if that stage needs a whole compilation."""
    from weft.compiler.driver import compile_file
    from weft.compiler.dump import dump_ir, dump_text, dump_tokens, dump_tree
    from weft.compiler.front import check_file, preprocess_file

    try:
        if stage in ("text", "tokens"):
            tokens = preprocess_file(source, **settings)
            click.echo(dump_text(tokens) if stage == "text" else dump_tokens(tokens))
            return None
        if stage == "ast":
            click.echo(dump_tree(check_file(source, **settings).tree))
            return None
        result = compile_file(source, **settings)
        click.echo(dump_ir(result.lowered))
        return Artifacts.of(result)
    except Exception as error:
        _exit_if_refused(error, printer)
        raise


def _exit_if_refused(error: Exception, printer: _MessagePrinter) -> None:
    from weft.compiler.diagnostics import CompileError

    if isinstance(error, CompileError):
        printer.print(diagnostic.report() for diagnostic in error.diagnostics)
        sys.exit(EXIT_BAD_INPUT)


def _write_message(path: Path, binary: bytes, text: Callable[[], str], as_json: Callable[[], str]) -> None:
    """Write a message in the format of the file's suffix."""
    if path.suffix == ".bin":
        _write(path, binary)
    else:
        _write(path, as_json() if path.suffix == ".json" else text())


def _write(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        if path.is_file():
            path.unlink()  # half a document could pass for a whole one
        raise OSError(error.errno, error.strerror, str(path)) from None
