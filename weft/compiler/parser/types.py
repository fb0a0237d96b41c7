"""Parsing of types, type arguments and type parameters (specification, section 7)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression, parse_width
from weft.compiler.parser.stream import TYPE, TokenStream
from weft.compiler.wording import hint

_BASE_TYPES = frozenset(["bool", "error", "match_kind", "string", "void"])
_TYPE_STARTERS = _BASE_TYPES | {"bit", "int", "varbit", "tuple"}


def at_type(stream: TokenStream) -> bool:
    """Whether a type begins here."""
    kind = stream.kind
    if kind == "id":
        return stream.is_type_name(stream.token.text) or (stream.token.text == "list" and stream.peek().kind == "<")
    if kind == ".":
        return stream.peek().kind == "id" and stream.scopes[0].get(stream.peek().text) == TYPE
    return kind in _TYPE_STARTERS


def parse_type(stream: TokenStream) -> ast.TypeNode:
    """A type reference."""
    stream.descend()
    try:
        return _type(stream)
    finally:
        stream.ascend()


def _type(stream: TokenStream) -> ast.TypeNode:
    first = stream.token
    kind = stream.kind
    node: ast.TypeNode
    if kind in ("bit", "int", "varbit"):
        node = _bits(stream)
    elif kind in _BASE_TYPES:
        stream.advance()
        node = ast.BaseTypeNode(stream.span(first), kind)
    elif kind == "_":
        stream.advance()
        node = ast.BaseTypeNode(stream.span(first), "_")
    elif kind == "tuple" or (stream.token.text == "list" and stream.peek().kind == "<"):
        stream.advance()
        base = ast.NamedTypeNode(stream.span(first), first.text)
        node = ast.SpecializedTypeNode(base.span, base, parse_type_arguments(stream))
        node.span = stream.span(first)
    elif kind == "." or kind == "id":
        node = _named(stream)
    else:
        raise stream.unexpected("a type")
    stacks = 0
    while stream.kind == "[":
        stream.descend()
        stream.advance()
        size = parse_expression(stream)
        stream.expect("]")
        node = ast.StackTypeNode(stream.span(first), node, size)
        stacks += 1
    stream.ascend(stacks)
    return node


def _bits(stream: TokenStream) -> ast.TypeNode:
    first = stream.advance()
    width: ast.Expression | None = None
    if stream.kind == "<":
        stream.advance()
        width = parse_width(stream)
        stream.expect(">")
    elif first.kind == "int":
        return ast.BaseTypeNode(stream.span(first), "int")
    elif first.kind == "varbit":
        raise stream.unexpected("'<'", "after 'varbit'")
    return ast.BitsTypeNode(stream.span(first), first.kind, width)


def _named(stream: TokenStream) -> ast.TypeNode:
    first = stream.token
    absolute = stream.accept(".") is not None
    if stream.kind == "id" and not stream.is_type_name(stream.token.text) and not absolute:
        unknown = stream.token.text
        types = {each for scope in stream.scopes for each, what in scope.items() if what == TYPE}
        # A type of this name is hidden by something else.
        advice = "" if unknown in types else hint(unknown, sorted(types), 0.75)
        stream.diagnostics.error(f"'{stream.token.text}' is not a type{advice}", stream.token)
        stream.declare(stream.token.text, TYPE)
    name = stream.expect("id")
    base = ast.NamedTypeNode(stream.span(first), name.text, absolute)
    if stream.kind == "<":
        arguments = parse_type_arguments(stream)
        return ast.SpecializedTypeNode(stream.span(first), base, arguments)
    return base


def parse_type_arguments(stream: TokenStream) -> list[ast.TypeNode]:
    """`<` type, … `>`."""
    stream.expect("<")
    arguments: list[ast.TypeNode] = []
    if stream.kind != ">":
        arguments.append(parse_type(stream))
        while stream.accept(","):
            arguments.append(parse_type(stream))
    stream.expect(">")
    return arguments


def parse_type_parameters(stream: TokenStream) -> list[ast.TypeParameter]:
    """Optional `<A, B>`; declares the names as types in the current scope."""
    parameters: list[ast.TypeParameter] = []
    if not stream.accept("<"):
        return parameters
    while True:
        annotations = parse_annotations(stream)
        name = stream.expect("id")
        stream.declare(name.text, TYPE)
        parameters.append(ast.TypeParameter(stream.span(name), name.text, annotations))
        if not stream.accept(","):
            break
    stream.expect(">")
    return parameters
