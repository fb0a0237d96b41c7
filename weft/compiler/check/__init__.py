"""The type checker: names, types, constants, directions.

Functions take a `CheckContext`: where in the program they are, what is declared, where errors go. Expressions,
statements and declarations contain each other, so `infer`, `check_statement` and `check_declaration` find the function
for a node in the table of `handlers`; all other dependencies are imports.
"""

from weft.compiler import ast
from weft.compiler.check.context import CheckContext, Symbols
from weft.compiler.check.declarations import check_declaration, check_structured_annotation
from weft.compiler.check.handlers import HANDLERS
from weft.compiler.diagnostics import Diagnostics

__all__ = ["Symbols", "check_program"]


def check_program(program: ast.Program, diagnostics: Diagnostics) -> Symbols:
    """Check all declarations in order; annotates the tree in place and returns what it declares."""
    context = CheckContext(diagnostics, HANDLERS)
    for declaration in program.declarations:
        check_declaration(context, declaration)
    for annotation in program.structured_annotations:
        check_structured_annotation(context, annotation)
    return context.symbols
