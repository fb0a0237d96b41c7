"""Parsing of key sets (specification, section 8.15)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.casts import at_cast
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import TokenStream


def parse_keyset(stream: TokenStream) -> ast.Expression:
    """A key set of select or entries: a simple one or a parenthesised tuple."""
    first = stream.token
    if stream.kind == "(" and _at_keyset_tuple(stream):
        stream.advance()
        elements = [_simple_keyset(stream)]
        while stream.accept(","):
            if stream.kind == ")":
                break
            elements.append(_simple_keyset(stream))
        stream.expect(")", "after the key set")
        return ast.KeysetTuple(stream.span(first), elements)
    return _simple_keyset(stream)


def _at_keyset_tuple(stream: TokenStream) -> bool:
    """`(a, b)`, `(a &&& b)`, `(_)` and the like, and `(x) :` but not `(x) + y`, nor a cast."""
    if at_cast(stream):
        return False
    depth = 0
    for index in range(stream.index, len(stream.tokens)):
        kind = stream.tokens[index].kind
        if kind in ("(", "{", "["):
            depth += 1
        elif kind in (")", "}", "]"):
            depth -= 1
            if depth == 0:
                return stream.tokens[index + 1].kind == ":"
        elif kind == "end":
            break
    return False


def _simple_keyset(stream: TokenStream) -> ast.Expression:
    """An expression, `a &&& b`, `a .. b`, `default` or `_`."""
    first = stream.token
    if stream.kind in ("default", "_"):
        stream.advance()
        return ast.DefaultExpression(stream.span(first))
    left = parse_expression(stream)
    if stream.kind in ("&&&", ".."):
        operator = stream.advance().kind
        right = parse_expression(stream)
        return ast.Binary(stream.span(first), operator, left, right)
    return left
