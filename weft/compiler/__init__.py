"""P4_16 (v1model) compiler: BMv2 JSON and P4Info from source."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.compiler.artifacts import Artifacts, compile_artifacts
    from weft.compiler.diagnostics import CompileError, Diagnostic
    from weft.compiler.driver import CompileResult, compile_file
    from weft.compiler.front import CheckedProgram, check_file

__all__ = [
    "Artifacts",
    "CheckedProgram",
    "CompileError",
    "CompileResult",
    "Diagnostic",
    "check_file",
    "compile_artifacts",
    "compile_file",
]

_MODULES = {
    "Artifacts": "artifacts",
    "CheckedProgram": "front",
    "CompileError": "diagnostics",
    "CompileResult": "driver",
    "Diagnostic": "diagnostics",
    "check_file": "front",
    "compile_artifacts": "artifacts",
    "compile_file": "driver",
}


def __getattr__(name: str) -> Any:
    """Import on demand: a result from the cache needs hardly any of the modules."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
