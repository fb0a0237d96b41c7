"""The type checker: names, types, constants, directions."""

from compiler.check.declarations import Checker

__all__ = ["Checker"]
