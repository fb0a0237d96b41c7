"""Hand-written recursive descent for P4_16.

Functions take a `TokenStream`: a cursor over the tokens, the names known to be types, budgets. Expressions, types and
statements contain each other, so the function for what begins with a kind of token is found in the tables of `grammar`;
all other dependencies are imports.
"""

from weft.compiler.parser.program import parse_program

__all__ = ["parse_program"]
