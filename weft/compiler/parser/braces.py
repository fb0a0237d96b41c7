"""Parsing of lists and structs in braces (specification, sections 8.13 to 8.16)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import TokenStream


def parse_braces(stream: TokenStream) -> ast.Expression:
    """`{a, b}`, `{name = a, …}` or `{#}`."""
    first = stream.expect("{")
    if stream.kind == "#":
        stream.advance()
        stream.expect("}")
        return ast.InvalidHeader(stream.span(first))
    if stream.kind == "id" and stream.peek().kind == "=":
        return _struct_elements(stream)
    elements: list[ast.Expression] = []
    rest = False
    while stream.kind != "}":
        if stream.kind == "..." and stream.peek().kind == "}":
            stream.advance()
            rest = True
            break
        elements.append(parse_expression(stream))
        if not stream.accept(","):
            break
    stream.expect("}", "after the list")
    return ast.ListExpression(stream.span(first), elements, rest)


def _struct_elements(stream: TokenStream) -> ast.Expression:
    opening = stream.tokens[stream.index - 1]
    elements: list[ast.NamedElement] = []
    rest = False
    while stream.kind != "}":
        if stream.accept("..."):
            rest = True
            break
        name = stream.expect("id")
        stream.expect("=")
        expression = parse_expression(stream)
        elements.append(ast.NamedElement(stream.span(name), name.text, expression))
        if not stream.accept(","):
            break
    stream.expect("}", "after the fields")
    return ast.StructExpression(stream.span(opening), elements, None, rest)
