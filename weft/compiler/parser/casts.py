"""Parsing of casts (specification, section 8.11)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.braces import parse_braces
from weft.compiler.parser.precedence import parse_operand
from weft.compiler.parser.stream import TokenStream
from weft.compiler.parser.types import parse_type


def at_cast(stream: TokenStream) -> bool:
    """Whether the parenthesis here opens a cast: a type stands behind it."""
    following = stream.peek()
    if following.kind in ("bit", "int", "varbit", "bool", "error", "string", "tuple"):
        # error.NoError in parentheses is no cast.
        return not (following.kind == "error" and stream.peek(2).kind == ".")
    if following.kind == ".":
        following = stream.peek(2)
        offset = 3
    else:
        offset = 2
    if following.kind != "id":
        return False
    if following.text == "list" and stream.peek(offset).kind == "<":
        return True
    if not stream.is_type_name(following.text):
        return False
    after = stream.peek(offset).kind
    return after in (")", "<", "[")


def parse_cast(stream: TokenStream) -> ast.Expression | None:
    """`(type) operand`, or `(type) {name = value, …}`, which is a struct of that type."""
    if not at_cast(stream):
        return None
    first = stream.expect("(")
    target = parse_type(stream)
    stream.expect(")", "after the type of the cast")
    if stream.kind == "{":
        operand = parse_braces(stream)
        if isinstance(operand, ast.StructExpression):
            operand.target = target
            operand.span = stream.span(first)
            return operand
    else:
        operand = parse_operand(stream)
    return ast.Cast(stream.span(first), target, operand)
