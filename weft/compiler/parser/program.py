"""Parsing of whole programs: which function parses which declaration (specification, section 6)."""

from __future__ import annotations

from collections.abc import Callable

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.blocks import parse_control, parse_package, parse_parser
from weft.compiler.parser.functions import at_function, parse_action, parse_extern, parse_function
from weft.compiler.parser.grammar import GRAMMAR
from weft.compiler.parser.stream import TokenStream
from weft.compiler.parser.type_declarations import parse_enum, parse_members, parse_struct, parse_typedef
from weft.compiler.parser.types import at_type, parse_type
from weft.compiler.parser.variables import parse_constant, parse_instance
from weft.compiler.source import Span, Token

_DECLARATIONS: dict[str, Callable[[TokenStream, ast.Annotations], ast.Declaration]] = {
    "action": parse_action,
    "const": parse_constant,
    "control": parse_control,
    "enum": parse_enum,
    "extern": parse_extern,
    "header": parse_struct,
    "header_union": parse_struct,
    "package": parse_package,
    "parser": parse_parser,
    "struct": parse_struct,
    "typedef": parse_typedef,
}


def parse_program(tokens: list[Token], diagnostics: Diagnostics) -> ast.Program:
    """The tree of all tokens; a broken declaration is reported and skipped."""
    stream = TokenStream(tokens, diagnostics, GRAMMAR)
    declarations: list[ast.Declaration] = []
    while stream.kind != "end":
        if stream.accept(";"):
            continue
        before = stream.index
        try:
            declarations.append(_declaration(stream))
        except Refused:
            del stream.scopes[1:]
            stream.recover()
            if stream.index == before or stream.kind == "}":
                stream.advance()
    return ast.Program(Span(tokens[0], stream.token), declarations, stream.structured_annotations)


def _declaration(stream: TokenStream) -> ast.Declaration:
    """One top-level declaration."""
    annotations = parse_annotations(stream)
    kind = stream.kind
    parse = _DECLARATIONS.get(kind)
    if parse is not None:
        return parse(stream, annotations)
    if kind in ("error", "match_kind") and stream.peek().kind == "{":
        return parse_members(stream, annotations)
    if kind == "id" and stream.token.text == "type" and not stream.is_type_name("type"):
        return parse_typedef(stream, annotations)
    if kind == "table":
        raise stream.unexpected("a top-level declaration (tables stand inside controls)")
    return _typed_declaration(stream, annotations)


def _typed_declaration(stream: TokenStream, annotations: ast.Annotations) -> ast.Declaration:
    """A function or an instance: both begin with a type."""
    if stream.kind not in ("id", ".", "void") and not at_type(stream):
        raise stream.unexpected("a declaration")
    if stream.kind == "id" and not stream.is_type_name(stream.token.text):
        following, after = stream.peek(), stream.peek(2)
        if following.kind != "id":
            raise stream.unexpected("a declaration")
        if after.kind == "<":
            return parse_function(stream, annotations)
    if at_function(stream):
        return parse_function(stream, annotations)
    node = parse_type(stream)
    if stream.kind == "(":
        return parse_instance(stream, annotations, node)
    raise stream.unexpected("'(' of an instance or a function's name", "after the type")
