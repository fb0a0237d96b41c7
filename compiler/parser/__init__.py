"""Hand-written recursive descent for P4_16."""

from compiler.parser.declarations import DeclarationParser as Parser

__all__ = ["Parser"]
