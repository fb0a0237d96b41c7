"""Parsing of constants, variables and instances (specification, section 11)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.calls import parse_arguments
from weft.compiler.parser.functions import at_function, parse_function
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import VALUE, TokenStream
from weft.compiler.parser.types import parse_type
from weft.compiler.source import Span


def parse_constant(stream: TokenStream, annotations: ast.Annotations) -> ast.ConstantDeclaration:
    """const type name = expression;"""
    first = stream.expect("const")
    node = parse_type(stream)
    name = stream.expect("id", "for the constant")
    stream.declare(name.text, VALUE)
    stream.expect("=", "after the constant's name")
    initial = parse_expression(stream)
    stream.expect(";", "after the constant")
    return ast.ConstantDeclaration(stream.span(first), name.text, annotations, node, initial)


def parse_variable_or_instance(stream: TokenStream, annotations: ast.Annotations) -> ast.Declaration:
    """type name = expression; or type(arguments) name;"""
    first = stream.token
    node = parse_type(stream)
    if stream.kind == "(":
        return parse_instance(stream, annotations, node)
    name = stream.expect("id", "after the type")
    stream.declare(name.text, VALUE)
    initial = parse_expression(stream) if stream.accept("=") else None
    stream.expect(";", "after the declaration")
    return ast.VariableDeclaration(stream.span(first), name.text, annotations, node, initial)


def parse_instance(stream: TokenStream, annotations: ast.Annotations, node: ast.TypeNode) -> ast.InstanceDeclaration:
    """The rest of an instantiation after its type."""
    arguments = parse_arguments(stream)
    name = stream.expect("id", "for the instance")
    block: list[ast.Declaration] | None = None
    if stream.accept("="):
        stream.expect("{")
        block = []
        while stream.kind not in ("}", "end"):
            block.append(_abstract_body(stream))
        stream.expect("}")
    stream.expect(";", "after the instance")
    stream.declare(name.text, VALUE)
    span = Span(node.span.first, stream.tokens[stream.index - 1])
    return ast.InstanceDeclaration(span, name.text, annotations, node, arguments, block)


def _abstract_body(stream: TokenStream) -> ast.Declaration:
    """A function or an instance inside an instantiation's block."""
    annotations = parse_annotations(stream)
    if at_function(stream):
        return parse_function(stream, annotations)
    return parse_instance(stream, annotations, parse_type(stream))
