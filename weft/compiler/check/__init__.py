"""The type checker: names, types, constants, directions."""

from weft.compiler.check.declarations import Checker

__all__ = ["Checker"]
