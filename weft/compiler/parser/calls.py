"""Parsing of what follows an expression: members, subscripts, calls."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import TokenStream
from weft.compiler.parser.types import parse_type_arguments

_TYPE_KEYWORDS = frozenset(["bit", "int", "varbit", "bool", "error", "tuple", "_", ".", "string", "void"])
_LOOKAHEAD_TOKENS = 400
"""How far the `>` that closes type arguments may be."""


def parse_member(stream: TokenStream, base: ast.Expression) -> ast.Expression:
    """`base.name`."""
    stream.lengthen_chain()
    stream.advance()
    if stream.kind != "id":
        raise stream.unexpected("a member's name", "after '.'")
    name = stream.advance()
    return ast.Member(stream.span(base.span.first), base, name.text, name)


def parse_subscript(stream: TokenStream, base: ast.Expression) -> ast.Expression:
    """`base[index]`, `base[high:low]` or `base[low +: width]`."""
    stream.lengthen_chain()
    stream.expect("[")
    index = parse_expression(stream)
    if stream.accept(":"):
        low = parse_expression(stream)
        stream.expect("]")
        return ast.Slice(stream.span(base.span.first), base, index, low)
    if stream.accept("+:"):
        width = parse_expression(stream)
        stream.expect("]")
        return ast.Slice(stream.span(base.span.first), base, index, width, True)
    stream.expect("]")
    return ast.Index(stream.span(base.span.first), base, index)


def _at_type_arguments(stream: TokenStream, callee: ast.Expression) -> bool:
    """Whether `<` after a name opens type arguments: `f<T>(`, `x.lookahead<bit<8>>()`."""
    if not isinstance(callee, ast.Name | ast.Member):
        return False
    following = stream.peek()
    if following.kind == "id":
        if not stream.is_type_name(following.text) and following.text != "list":
            return False
    elif following.kind not in _TYPE_KEYWORDS:
        return False
    depth = 0
    for index in range(stream.index, min(stream.index + _LOOKAHEAD_TOKENS, len(stream.tokens))):
        kind = stream.tokens[index].kind
        if kind == "<":
            depth += 1
        elif kind == ">":
            depth -= 1
            if depth == 0:
                return stream.tokens[index + 1].kind == "("
        elif kind in (";", "{", "}", "end", "&&", "||"):
            break
    return False


def parse_call(stream: TokenStream, callee: ast.Expression) -> ast.Expression:
    """`callee(arguments)`."""
    stream.lengthen_chain()
    arguments = parse_arguments(stream)
    return ast.Call(stream.span(callee.span.first), callee, [], arguments)


def parse_generic_call(stream: TokenStream, callee: ast.Expression) -> ast.Expression | None:
    """`callee<type arguments>(arguments)`; None if the `<` compares."""
    if not _at_type_arguments(stream, callee):
        return None
    type_arguments = parse_type_arguments(stream)
    arguments = parse_arguments(stream)
    return ast.Call(stream.span(callee.span.first), callee, type_arguments, arguments)


def parse_arguments(stream: TokenStream) -> list[ast.Argument]:
    """`(` arguments `)`."""
    stream.expect("(")
    arguments: list[ast.Argument] = []
    while stream.kind != ")":
        first = stream.token
        name: str | None = None
        if stream.kind == "id" and stream.peek().kind == "=":
            name = stream.advance().text
            stream.advance()
        expression: ast.Expression | None
        if stream.kind == "_" and stream.peek().kind in (",", ")"):
            stream.advance()
            expression = None
        else:
            expression = parse_expression(stream)
        arguments.append(ast.Argument(stream.span(first), name, expression))
        if not stream.accept(","):
            break
    stream.expect(")", "after the arguments")
    return arguments
