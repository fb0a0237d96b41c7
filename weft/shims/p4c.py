"""p4c and p4c-bm2-ss: `weft compile` with their options and their places for the compiled program.

`p4c -o` names a folder, which gets NAME.json; without it, that is the current one. `p4c-bm2-ss -o` names the file. With
the program goes its P4Info, which `simple_switch` needs so that simple_switch_CLI finds tables by their names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from weft.cli import run_guarded
from weft.compiler.cli import compile_command
from weft.errors import BadInputError

DRIVER = "p4c"
P4INFO_SUFFIXES = (".p4.p4info.txtpb", "_p4rt.txt", ".p4info.txtpb")
"""Ends of P4Info's name next to NAME.json: as the tutorials, p4-utils and Weft's pages write it."""
_RENAMED = {"-b": "--target", "-a": "--arch", "-x": "--std", "--p4runtime-file": "--p4runtime-files"}
_WITHOUT_EFFECT = {"--p4runtime-format": ("text",), "--language": ("p4-16",)}
"""Options with a value that has to be one of these, because Weft does nothing else."""


def main() -> None:
    """Run the compiler by the name in the first argument, with the others."""
    name, *arguments = sys.argv[1:]
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run_guarded(lambda: compile_as(name, arguments)))


def compile_as(name: str, arguments: list[str]) -> None:
    """Compile like the program `name`, p4c or p4c-bm2-ss. Raises click.UsageError; ends the process as `compile`."""
    words = list(_translated(arguments))
    folder = _folder(words) if name == DRIVER else Path()
    with compile_command.make_context(name, words) as context:
        given = context.params
        source: Path = given["source"]
        if not given["preprocess_only"]:
            if name == DRIVER:
                given["output"] = folder / f"{source.stem}.json"
            if given["output"] is not None:
                _add_p4info(given["output"], given["p4info_files"])
        compile_command.invoke(context)


def _folder(words: list[str]) -> Path:
    """Take `-o FOLDER` out of a command line and return the folder; the current one if there is none."""
    folder = Path()
    while "-o" in words:
        at = words.index("-o")
        if at + 1 == len(words):
            raise click.UsageError("-o: names no folder")
        folder = Path(words[at + 1])
        del words[at : at + 2]
    if folder.is_file():
        raise BadInputError(f"{folder} is a file", place="-o", valid="a folder")
    return folder


def p4info_of(program: Path) -> Path | None:
    """Return the P4Info next to a compiled program; None if there is none, or if it is older than the program."""
    for suffix in P4INFO_SUFFIXES:
        found = _beside(program, suffix)
        try:
            if found.stat().st_mtime_ns >= program.stat().st_mtime_ns:
                return found
        except OSError:
            continue
    return None


def _add_p4info(output: Path, p4info_files: list[Path]) -> None:
    known = {os.path.abspath(_beside(output, suffix)) for suffix in P4INFO_SUFFIXES}
    if not any(os.path.abspath(path) in known for path in p4info_files):
        p4info_files.append(_beside(output, P4INFO_SUFFIXES[0]))


def _beside(program: Path, suffix: str) -> Path:
    return program.with_name(program.stem + suffix)


def _translated(arguments: list[str]) -> Iterator[str]:
    """Yield arguments with p4c's spellings replaced by those of `weft compile`."""
    words = iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option in _WITHOUT_EFFECT:
            value = value if equals else next(words, "")
            if value not in _WITHOUT_EFFECT[option]:
                raise click.UsageError(f"{option} {value}: not supported (valid: {', '.join(_WITHOUT_EFFECT[option])})")
        elif option in _RENAMED:
            yield _RENAMED[option] + equals + value
        else:
            yield word


if __name__ == "__main__":
    main()
