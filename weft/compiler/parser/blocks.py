"""Parsing of controls, parsers and packages (specification, sections 13, 14, 15)."""

from __future__ import annotations

from dataclasses import dataclass

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.lexer import KEYWORDS
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.functions import parse_action, parse_parameters
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.statements import parse_block
from weft.compiler.parser.states import parse_state
from weft.compiler.parser.stream import TYPE, VALUE, TokenStream
from weft.compiler.parser.tables import parse_table
from weft.compiler.parser.types import at_type, parse_type, parse_type_parameters
from weft.compiler.parser.variables import parse_constant, parse_variable_or_instance
from weft.compiler.source import Span, Token


@dataclass(frozen=True, slots=True)
class _BlockHead:
    """A control or parser up to its body."""

    span: Span
    name: Token
    annotations: ast.Annotations
    type_parameters: list[ast.TypeParameter]
    parameters: list[ast.Parameter]
    constructor: list[ast.Parameter]
    has_body: bool


def _block_head(stream: TokenStream, annotations: ast.Annotations) -> _BlockHead:
    """Parse how a control or parser begins: `parser P<T>(…)(…)`, up to `{` or `;`, in the scope that is open."""
    first = stream.advance()
    name = stream.expect("id", f"for the {first.kind}")
    stream.scopes[-2][name.text] = TYPE
    type_parameters = parse_type_parameters(stream)
    parameters = parse_parameters(stream)
    span = Span(first, name)
    if stream.accept(";"):
        return _BlockHead(span, name, annotations, type_parameters, parameters, [], has_body=False)
    constructor = parse_parameters(stream) if stream.kind == "(" else []
    stream.expect("{", f"of {first.kind} '{name.text}'")
    return _BlockHead(span, name, annotations, type_parameters, parameters, constructor, has_body=True)


def parse_parser(stream: TokenStream, annotations: ast.Annotations) -> ast.ParserDeclaration:
    """A parser, or its type alone."""
    with stream.scope():
        head = _block_head(stream, annotations)
        local_declarations: list[ast.Declaration] = []
        states: list[ast.StateDeclaration] = []
        while head.has_body and stream.kind not in ("}", "end"):
            inner = parse_annotations(stream)
            try:
                if _at_state(stream):
                    states.append(parse_state(stream, inner))
                else:
                    local_declarations.append(_local(stream, inner))
            except Refused:
                stream.recover()
        if head.has_body:
            stream.expect("}", f"of parser '{head.name.text}'")
    return ast.ParserDeclaration(
        head.span, head.name.text, annotations, head.type_parameters, head.parameters, head.constructor,
        local_declarations, states if head.has_body else None,
    )  # fmt: skip


def _at_state(stream: TokenStream) -> bool:
    """Whether a state begins here; its name may be a keyword."""
    following = stream.peek()
    named = following.kind == "id" or (following.kind in KEYWORDS and stream.peek(2).kind == "{")
    return stream.kind == "id" and stream.token.text == "state" and named


def _local(stream: TokenStream, annotations: ast.Annotations) -> ast.Declaration:
    """A declaration local to a parser or control."""
    if stream.kind == "const":
        return parse_constant(stream, annotations)
    if stream.kind == "action":
        return parse_action(stream, annotations)
    if stream.kind == "table":
        return parse_table(stream, annotations)
    # "value_set" for p4c, "valueset" in the specification.
    if stream.token.text in ("value_set", "valueset") and stream.peek().kind == "<":
        return _value_set(stream, annotations)
    if not at_type(stream) and not (stream.kind == "id" and stream.peek().kind in ("id", "(", "<")):
        raise stream.unexpected("a local declaration")
    return parse_variable_or_instance(stream, annotations)


def _value_set(stream: TokenStream, annotations: ast.Annotations) -> ast.ValueSetDeclaration:
    first = stream.advance()
    stream.expect("<")
    node = parse_type(stream)
    stream.expect(">")
    stream.expect("(")
    size = parse_expression(stream)
    stream.expect(")")
    name = stream.expect("id", "for the value set")
    stream.declare(name.text, VALUE)
    stream.expect(";")
    return ast.ValueSetDeclaration(stream.span(first), name.text, annotations, node, size)


def parse_control(stream: TokenStream, annotations: ast.Annotations) -> ast.ControlDeclaration:
    """A control, or its type alone."""
    with stream.scope():
        head = _block_head(stream, annotations)
        local_declarations: list[ast.Declaration] = []
        body: ast.Block | None = None
        while head.has_body and stream.kind not in ("}", "end"):
            inner = parse_annotations(stream)
            try:
                if stream.kind == "id" and stream.token.text == "apply" and stream.peek().kind in ("{", "@"):
                    stream.advance()
                    body = parse_block(stream, inner + parse_annotations(stream))
                    break
                local_declarations.append(_local(stream, inner))
            except Refused:
                stream.recover()
        if head.has_body:
            _end_of_control(stream, head.name, body)
            body = body or ast.Block(head.span, [])
    return ast.ControlDeclaration(
        head.span, head.name.text, annotations, head.type_parameters, head.parameters, head.constructor,
        local_declarations, body,
    )  # fmt: skip


def _end_of_control(stream: TokenStream, name: Token, body: ast.Block | None) -> None:
    if body is None and not stream.diagnostics.error_count:
        stream.diagnostics.error(f"control '{name.text}' has no apply block", name)
    stream.expect("}", f"of control '{name.text}'")


def parse_package(stream: TokenStream, annotations: ast.Annotations) -> ast.PackageDeclaration:
    """A package, which has no body."""
    first = stream.advance()
    name = stream.expect("id", "for the package")
    stream.declare(name.text, TYPE)
    with stream.scope():
        type_parameters = parse_type_parameters(stream)
        parameters = parse_parameters(stream)
    stream.expect(";", "after the package")
    return ast.PackageDeclaration(Span(first, name), name.text, annotations, type_parameters, parameters)
