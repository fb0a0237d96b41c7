"""Parsing of loops (specification, section 12.8)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.statements import (
    at_declaration,
    parse_assignment_or_call,
    parse_branch,
)
from weft.compiler.parser.stream import VALUE, TokenStream
from weft.compiler.parser.types import at_type, parse_type
from weft.compiler.source import Token


def parse_for(stream: TokenStream, annotations: ast.Annotations) -> ast.Statement:
    """`for (initialisers; condition; updates)` or `for (type name in collection)`."""
    first = stream.expect("for")
    stream.expect("(")
    with stream.scope():
        variable_annotations = parse_annotations(stream)
        if _at_for_in(stream):
            return _for_in(stream, first, variable_annotations)
        initialisers: list[ast.Node] = []
        while stream.kind != ";":
            initialisers.append(_for_initialiser(stream))
            if not stream.accept(","):
                break
        stream.expect(";", "after the initialisers")
        condition = parse_expression(stream)
        stream.expect(";", "after the condition")
        updates: list[ast.Statement] = []
        while stream.kind != ")":
            updates.append(parse_assignment_or_call(stream))
            if not stream.accept(","):
                break
        stream.expect(")")
        body = parse_branch(stream)
        return ast.For(stream.span(first), initialisers, condition, updates, body)


def _at_for_in(stream: TokenStream) -> bool:
    """Whether `in` comes before the first semicolon."""
    depth = 0
    for index in range(stream.index, len(stream.tokens)):
        kind = stream.tokens[index].kind
        if kind == "in" and depth == 0:
            return True
        if kind in (";", "end", "{"):
            return False
        depth += {"(": 1, ")": -1}.get(kind, 0)
        if depth < 0:
            return False
    return False


def _for_in(stream: TokenStream, first: Token, annotations: ast.Annotations) -> ast.ForIn:
    start = stream.token
    if not at_type(stream):
        raise stream.unexpected("a type", "before the loop's variable")
    node = parse_type(stream)
    name = stream.expect("id")
    stream.declare(name.text, VALUE)
    variable = ast.VariableDeclaration(stream.span(start), name.text, annotations, node, None)
    stream.expect("in")
    collection_first = stream.token
    collection = parse_expression(stream)
    if stream.kind == "..":
        stream.advance()
        high = parse_expression(stream)
        collection = ast.Binary(stream.span(collection_first), "..", collection, high)
    stream.expect(")")
    body = parse_branch(stream)
    return ast.ForIn(stream.span(first), variable, collection, body)


def _for_initialiser(stream: TokenStream) -> ast.Node:
    first = stream.token
    annotations = parse_annotations(stream)
    if not at_declaration(stream):
        return parse_assignment_or_call(stream)
    node = parse_type(stream)
    name = stream.expect("id")
    stream.declare(name.text, VALUE)
    initial = parse_expression(stream) if stream.accept("=") else None
    return ast.VariableDeclaration(stream.span(first), name.text, annotations, node, initial)
