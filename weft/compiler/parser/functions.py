"""Parsing of functions, externs and actions (specification, sections 6.8, 10, 14.1)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.statements import parse_block
from weft.compiler.parser.stream import TYPE, VALUE, TokenStream
from weft.compiler.parser.types import parse_type, parse_type_parameters
from weft.compiler.source import Span


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


def at_function(stream: TokenStream) -> bool:
    """Whether a function begins here, not an instance: a name follows the type, and then parameters."""
    index = stream.index
    depth = 0
    while stream.tokens[index].kind not in ("end", ";", "{"):
        kind = stream.tokens[index].kind
        if kind in ("<", "["):
            depth += 1
        elif kind in (">", "]"):
            depth -= 1
        elif depth == 0 and index > stream.index:
            if kind == "(":
                return False
            if kind == "id" and stream.tokens[index - 1].kind != ".":
                return stream.tokens[index + 1].kind in ("(", "<")
        index += 1
    return False


def parse_function(stream: TokenStream, annotations: ast.Annotations) -> ast.FunctionDeclaration:
    """A function with its body."""
    with stream.scope():
        function = _prototype_in_scope(stream, annotations)
        function.body = parse_block(stream)
    return function


def parse_action(stream: TokenStream, annotations: ast.Annotations) -> ast.ActionDeclaration:
    """action name(parameters) block."""
    first = stream.expect("action")
    name = stream.expect("id", "for the action")
    stream.declare(name.text, VALUE)
    with stream.scope():
        parameters = parse_parameters(stream)
        body = parse_block(stream)
    return ast.ActionDeclaration(Span(first, name), name.text, annotations, parameters, body)


def parse_extern(stream: TokenStream, annotations: ast.Annotations) -> ast.Declaration:
    """An extern object with its methods, or an extern function."""
    first = stream.advance()
    annotations = annotations + parse_annotations(stream)
    if not _at_extern_object(stream):
        function = _prototype(stream, annotations)
        stream.expect(";", "after the extern function")
        return function
    name = stream.expect("id", "for the extern")
    stream.declare(name.text, TYPE)
    methods: list[ast.FunctionDeclaration] = []
    with stream.scope():
        type_parameters = parse_type_parameters(stream)
        stream.expect("{")
        while stream.kind not in ("}", "end"):
            methods.append(_method(stream, name.text))
        stream.expect("}")
    return ast.ExternDeclaration(Span(first, name), name.text, annotations, type_parameters, methods)


def _at_extern_object(stream: TokenStream) -> bool:
    """Whether braces follow the name and type parameters."""
    if stream.peek().kind == "{":
        return True
    if stream.peek().kind != "<":
        return False
    index = stream.index + 1
    while stream.tokens[index].kind not in (">", "end"):
        index += 1
    return stream.tokens[index + 1].kind == "{"


def _method(stream: TokenStream, extern: str) -> ast.FunctionDeclaration:
    annotations = parse_annotations(stream)
    abstract = stream.accept("abstract") is not None
    if stream.kind == "id" and stream.token.text == extern and stream.peek().kind == "(":
        name = stream.advance()
        with stream.scope():
            parameters = parse_parameters(stream)
        stream.expect(";", "after the constructor")
        return ast.FunctionDeclaration(Span(name, name), extern, annotations, None, [], parameters, None)
    method = _prototype(stream, annotations)
    method.is_abstract = abstract
    stream.expect(";", "after the method")
    return method


def _prototype(stream: TokenStream, annotations: ast.Annotations) -> ast.FunctionDeclaration:
    """Result, name, type parameters, parameters; the result may be one of the type parameters."""
    with stream.scope():
        return _prototype_in_scope(stream, annotations)


def _prototype_in_scope(stream: TokenStream, annotations: ast.Annotations) -> ast.FunctionDeclaration:
    """The same in the scope that is open, where a body sees the parameters."""
    name_index = _prototype_name(stream)
    if name_index is not None and stream.tokens[name_index + 1].kind == "<":
        index = name_index + 2
        while stream.tokens[index].kind in ("id", ","):
            if stream.tokens[index].kind == "id":
                stream.declare(stream.tokens[index].text, TYPE)
            index += 1
    result = parse_type(stream)
    name = stream.expect("id", "for the function")
    stream.scopes[-2].setdefault(name.text, VALUE)
    type_parameters = parse_type_parameters(stream)
    parameters = parse_parameters(stream)
    return ast.FunctionDeclaration(Span(name, name), name.text, annotations, result, type_parameters, parameters, None)


def _prototype_name(stream: TokenStream) -> int | None:
    """Where the name stands, the result being a type's name, maybe with arguments."""
    if stream.kind != "id":
        return None
    index, depth = stream.index + 1, 0
    while stream.tokens[index].kind in ("<", ">", ",", "bit", "int", "integer") or (
        depth and stream.tokens[index].kind == "id"
    ):
        depth += {"<": 1, ">": -1}.get(stream.tokens[index].kind, 0)
        index += 1
    return index if stream.tokens[index].kind == "id" else None
