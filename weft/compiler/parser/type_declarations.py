"""Parsing of declarations of types (specification, section 7.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import TYPE, TokenStream
from weft.compiler.parser.types import parse_type, parse_type_parameters
from weft.compiler.source import Span


def parse_struct(stream: TokenStream, annotations: ast.Annotations) -> ast.StructDeclaration:
    """A struct, header or header union."""
    first = stream.advance()
    name = stream.expect("id", f"for the {first.kind}")
    stream.declare(name.text, TYPE)
    fields: list[ast.Field] = []
    with stream.scope():
        type_parameters = parse_type_parameters(stream)
        stream.expect("{", f"of {first.kind} '{name.text}'")
        while stream.kind not in ("}", "end"):
            try:
                fields.append(_field(stream))
            except Refused:
                stream.skip_to(";", "}")
                if not stream.accept(";") and stream.kind != "}":
                    raise
        stream.expect("}", f"of {first.kind} '{name.text}'")
    return ast.StructDeclaration(Span(first, name), name.text, annotations, first.kind, type_parameters, fields)


def _field(stream: TokenStream) -> ast.Field:
    first = stream.token
    annotations = parse_annotations(stream)
    node = parse_type(stream)
    name = stream.expect("id", "for the field")
    stream.expect(";", "after the field")
    return ast.Field(Span(first if not annotations else node.span.first, name), name.text, annotations, node)


def parse_enum(stream: TokenStream, annotations: ast.Annotations) -> ast.EnumDeclaration:
    """An enum, or one with an underlying type."""
    first = stream.advance()
    underlying = parse_type(stream) if stream.peek().kind != "{" else None
    name = stream.expect("id", "for the enum")
    stream.declare(name.text, TYPE)
    members = _member_list(stream, True)
    return ast.EnumDeclaration(Span(first, name), name.text, annotations, underlying, members)


def parse_members(stream: TokenStream, annotations: ast.Annotations) -> ast.MembersDeclaration:
    """`error {…}` or `match_kind {…}`."""
    first = stream.advance()
    members = _member_list(stream, False)
    return ast.MembersDeclaration(stream.span(first), first.kind, annotations, members)


def _member_list(stream: TokenStream, values: bool) -> list[ast.EnumMember]:
    stream.expect("{")
    members: list[ast.EnumMember] = []
    while stream.kind not in ("}", "end"):
        annotations = parse_annotations(stream)
        name = stream.expect("id")
        expression = parse_expression(stream) if values and stream.accept("=") else None
        members.append(ast.EnumMember(Span(name, name), name.text, annotations, expression))
        if not stream.accept(","):
            break
    stream.expect("}")
    return members


def parse_typedef(stream: TokenStream, annotations: ast.Annotations) -> ast.TypedefDeclaration:
    """`typedef` or `type`, of a type or of a declaration of one."""
    first = stream.advance()
    is_new = first.text == "type"
    inner = parse_annotations(stream)
    node: ast.TypeNode | None = None
    derived: ast.Declaration | None = None
    if stream.kind in ("header", "struct", "header_union", "enum"):
        derived = parse_enum(stream, inner) if stream.kind == "enum" else parse_struct(stream, inner)
    else:
        node = parse_type(stream)
    name = stream.expect("id", f"for the {'type' if is_new else 'typedef'}")
    stream.declare(name.text, TYPE)
    stream.expect(";", "after the typedef")
    return ast.TypedefDeclaration(Span(first, name), name.text, annotations, node, derived, is_new)
