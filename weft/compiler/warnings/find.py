"""Warnings: what is legal but surely a mistake. A pass over the checked tree, after the compiler has accepted it."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.warnings.expressions import check_expressions
from weft.compiler.warnings.flow import check_flow
from weft.compiler.warnings.parsers import check_parsers
from weft.compiler.warnings.reporter import WarningReporter
from weft.compiler.warnings.shadowing import check_shadowing
from weft.compiler.warnings.unused import check_unused

__all__ = ["find_warnings"]


def find_warnings(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Add all warnings about a program that passed the checker to `diagnostics`."""
    reporter = WarningReporter(program, diagnostics)
    for check in (check_unused, check_shadowing, check_expressions, check_parsers, check_flow):
        check(program, reporter)
    reporter.finish()
