"""Parsing of parameters (specification, section 6.8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import VALUE, TokenStream
from weft.compiler.parser.types import parse_type


def parse_parameters(stream: TokenStream) -> list[ast.Parameter]:
    """`(` parameters `)`; declares their names in the current scope, behind the list."""
    stream.expect("(")
    parameters: list[ast.Parameter] = []
    while stream.kind != ")":
        parameters.append(_parameter(stream))
        if not stream.accept(","):
            break
    stream.expect(")", "after the parameters")
    for parameter in parameters:
        stream.declare(parameter.name, VALUE)
    return parameters


def _parameter(stream: TokenStream) -> ast.Parameter:
    first = stream.token
    annotations = parse_annotations(stream)
    direction = ""
    if stream.kind in ("in", "out", "inout"):
        direction = stream.advance().kind
    node = parse_type(stream)
    name = stream.expect("id", "for the parameter")
    default = parse_expression(stream) if stream.accept("=") else None
    return ast.Parameter(stream.span(first), name.text, annotations, direction, node, default)
