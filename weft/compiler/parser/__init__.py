"""Hand-written recursive descent for P4_16."""

from weft.compiler.parser.declarations import DeclarationParser as Parser

__all__ = ["Parser"]
