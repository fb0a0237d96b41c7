"""The type checker: names, types, constants, directions; rules over a `CheckContext`."""

# Imported for the rules that they register.
from weft.compiler.check import (  # noqa: F401
    blocks,
    calls,
    casts,
    functions,
    indexing,
    instances,
    literals,
    loops,
    members,
    names,
    operators,
    switches,
    tables,
    type_declarations,
    variables,
)
from weft.compiler.check.context import Symbols
from weft.compiler.check.declarations import check_program

__all__ = ["Symbols", "check_program"]
