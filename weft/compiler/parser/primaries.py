"""Parsing of what expressions begin with: literals, names, types, parentheses."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import WIDTH_BITS, exceeded
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import SyntaxRefused, TokenStream
from weft.compiler.parser.types import at_type, parse_type
from weft.compiler.source import Span


def parse_integer(stream: TokenStream) -> ast.IntegerLiteral:
    """An integer literal."""
    token = stream.expect("integer")
    span = Span(token, token)
    digits = len(token.text)
    if digits > WIDTH_BITS:
        exceeded(stream.diagnostics, f"an integer of {digits} digits has more than {WIDTH_BITS} bits", token)
    try:
        number, width, signed = ast.parse_integer(token.text)
    except ValueError:
        stream.diagnostics.error(f"'{token.text}' is not an integer", token)
        raise SyntaxRefused from None
    if number.bit_length() > WIDTH_BITS or (width is not None and width > WIDTH_BITS):
        exceeded(stream.diagnostics, f"an integer has at most {WIDTH_BITS} bits", token)
    return ast.IntegerLiteral(span, number, width, signed)


def parse_name(stream: TokenStream) -> ast.Expression:
    """A name, or a type if the name stands for one."""
    token = stream.token
    if stream.is_type_name(token.text) or (token.text == "list" and stream.peek().kind == "<"):
        return parse_type_expression(stream)
    stream.advance()
    return ast.Name(Span(token, token), token.text)


def parse_absolute_name(stream: TokenStream) -> ast.Expression:
    """A name with a leading dot: one of the top level."""
    if at_type(stream):
        return parse_type_expression(stream)
    dot = stream.advance()
    name = stream.expect("id")
    return ast.Name(stream.span(dot), name.text, True)


def parse_type_expression(stream: TokenStream) -> ast.Expression:
    """A type: what stands left of a dot or is constructed."""
    first = stream.token
    node = parse_type(stream)
    return ast.TypeExpression(stream.span(first), node)


def parse_parentheses(stream: TokenStream) -> ast.Expression:
    """`(expression)`."""
    stream.advance()
    inner = parse_expression(stream)
    stream.expect(")")
    return inner


def parse_boolean(stream: TokenStream) -> ast.Expression:
    """`true` or `false`."""
    token = stream.advance()
    return ast.BooleanLiteral(Span(token, token), token.kind == "true")


def parse_text(stream: TokenStream) -> ast.Expression:
    """Adjacent strings are one."""
    first = stream.advance()
    text = ast.unquote(first.text)
    while stream.kind == "text":
        text += ast.unquote(stream.advance().text)
    return ast.StringLiteral(stream.span(first), text)


def parse_this(stream: TokenStream) -> ast.Expression:
    """`this`."""
    token = stream.advance()
    return ast.This(Span(token, token))


def parse_default(stream: TokenStream) -> ast.Expression:
    """`default`, `_` or `...`."""
    token = stream.advance()
    return ast.DefaultExpression(Span(token, token))
