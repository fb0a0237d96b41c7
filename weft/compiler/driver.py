"""The whole compiler: a P4_16 file in, BMv2 JSON and P4Info out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.cache import collector_paused
from weft.compiler.budgets import on_deep_stack
from weft.compiler.diagnostics import CompileError, Diagnostic, Diagnostics, Refused
from weft.compiler.emit_json import document_text, emit_json
from weft.compiler.front import CheckedProgram, check_file
from weft.compiler.ir import LoweredProgram
from weft.compiler.lower.program import lower_program
from weft.compiler.p4info import build_p4info, initial_entries
from weft.compiler.p4info.formats import Content, to_text
from weft.compiler.warnings.find import find_warnings


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of a compilation: `json` is the BMv2 document, `p4info` a p4.config.v1.P4Info."""

    json: dict[str, Any]
    p4info: Any
    warnings: list[Diagnostic]
    checked: CheckedProgram
    lowered: LoweredProgram

    def json_text(self) -> str:
        """The JSON document as text."""
        return document_text(self.json)

    def p4info_text(self) -> str:
        """P4Info in protobuf's text format."""
        return to_text(Content.P4INFO, self.p4info)

    def p4info_bytes(self) -> bytes:
        """P4Info in protobuf's binary format."""
        return bytes(self.p4info.SerializeToString(deterministic=True))

    def entries_bytes(self) -> bytes:
        """The entries that the program lists: a p4.v1.WriteRequest in protobuf's binary format."""
        return bytes(initial_entries(self.lowered, self.p4info).SerializeToString(deterministic=True))


def compile_file(
    path: str | Path,
    *,
    include_paths: Sequence[str | Path] = (),
    defines: Mapping[str, str | None] | None = None,
) -> CompileResult:
    """Compile a v1model program.

    `include_paths` are searched after the including file's folder; core.p4 and v1model.p4 are built in.
    `defines` gives macros their values; None undefines one that is predefined.
    Raises CompileError; its `diagnostics` hold every error and warning.
    """
    return on_deep_stack(lambda: _compile(path, include_paths, defines))


def _compile(
    path: str | Path, include_paths: Sequence[str | Path], defines: Mapping[str, str | None] | None
) -> CompileResult:
    diagnostics = Diagnostics()
    with collector_paused():
        try:
            checked = check_file(path, include_paths=include_paths, defines=defines, diagnostics=diagnostics)
            lowered, control_plane = lower_program(checked.tree, checked.symbols, str(path), diagnostics)
            document = emit_json(lowered, diagnostics)
            p4info = build_p4info(lowered, control_plane, diagnostics)
            find_warnings(checked.tree, diagnostics)
        except Refused:
            diagnostics.raise_if_errors()
            raise
        except RecursionError:
            diagnostics.error("the program nests too deep to be compiled", None)
            raise CompileError(diagnostics.messages) from None
        except (AssertionError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
            # A program must not bring the compiler down, whatever is in it; the cause stays chained.
            diagnostics.error(f"internal compiler error ({type(error).__name__}: {error})", None)
            raise CompileError(diagnostics.messages) from error
    return CompileResult(document, p4info, diagnostics.warnings, checked, lowered)
