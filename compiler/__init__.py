"""P4_16 (v1model) compiler: BMv2 JSON and P4Info from source."""

from compiler.diagnostics import CompileError, Diagnostic
from compiler.driver import CompileResult, compile_file
from compiler.front import CheckedProgram, check_file

__all__ = ["CheckedProgram", "CompileError", "CompileResult", "Diagnostic", "check_file", "compile_file"]
