"""The front end: from a file to a checked syntax tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.compiler import ast
from weft.compiler.budgets import on_deep_stack
from weft.compiler.check import Symbols, check_program
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.parser import parse_program
from weft.compiler.preprocess import Preprocessor, read_source
from weft.compiler.source import SourceFile, Token


@dataclass(slots=True)
class CheckedProgram:
    """A program without errors: its annotated tree and what it declares.

    `files` are those that were read, `absent` the places where an included file was sought but not found.
    """

    tokens: list[Token]
    tree: ast.Program
    symbols: Symbols
    files: list[SourceFile]
    absent: list[Path]


def preprocess_file(
    path: str | Path,
    *,
    include_paths: Sequence[str | Path] = (),
    defines: Mapping[str, str | None] | None = None,
) -> list[Token]:
    """All tokens of a file and what it includes. Raises CompileError."""
    return on_deep_stack(lambda: _preprocess(path, include_paths, defines))


def _preprocess(
    path: str | Path, include_paths: Sequence[str | Path], defines: Mapping[str, str | None] | None
) -> list[Token]:
    diagnostics = Diagnostics()
    try:
        source = read_source(Path(path), diagnostics)
        tokens = Preprocessor(diagnostics, [Path(folder) for folder in include_paths], defines).run(source)
    except Refused:
        diagnostics.raise_if_errors()
        raise
    diagnostics.raise_if_errors()
    return tokens


def check_source(
    source: SourceFile,
    diagnostics: Diagnostics,
    include_paths: Sequence[Path] = (),
    defines: Mapping[str, str | None] | None = None,
) -> CheckedProgram:
    """Preprocess, parse and type-check. Raises CompileError with everything found wrong."""
    preprocessor = Preprocessor(diagnostics, include_paths, defines)
    tokens = preprocessor.run(source)
    diagnostics.raise_if_errors()
    tree = parse_program(tokens, diagnostics)
    diagnostics.raise_if_errors()
    symbols = check_program(tree, diagnostics)
    diagnostics.raise_if_errors()
    return CheckedProgram(tokens, tree, symbols, preprocessor.files, preprocessor.absent)


def check_file(
    path: str | Path,
    *,
    include_paths: Sequence[str | Path] = (),
    defines: Mapping[str, str | None] | None = None,
    diagnostics: Diagnostics | None = None,
) -> CheckedProgram:
    """Front end for a file. Raises CompileError."""
    diagnostics = diagnostics or Diagnostics()
    folders = [Path(folder) for folder in include_paths]
    try:
        source = read_source(Path(path), diagnostics)
        return on_deep_stack(lambda: check_source(source, diagnostics, folders, defines))
    except Refused:
        diagnostics.raise_if_errors()
        raise
