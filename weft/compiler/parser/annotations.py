"""Parsing of annotations (specification, section 20)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import TokenStream
from weft.compiler.source import Token


def parse_annotations(stream: TokenStream) -> ast.Annotations:
    """Any number of annotations."""
    annotations: ast.Annotations = []
    while stream.kind == "@":
        first = stream.advance()
        name = stream.advance()
        if stream.kind == "[":
            annotation = _structured(stream, first, name)
            if any(each.name == name.text for each in annotations):
                stream.diagnostics.error(f"the annotation '@{name.text}' stands here twice", name)
        else:
            body: list[Token] = []
            if name.text == "pragma" and stream.kind != "(":
                name, body = _pragma(stream, name)
            elif stream.kind == "(":
                body = _balanced(stream)
            annotation = ast.Annotation(stream.span(first), name.text, body)
        annotations.append(annotation)
    return annotations


def _structured(stream: TokenStream, first: Token, name: Token) -> ast.Annotation:
    """`@name[1, "two"]` or `@name[key=value, …]`: one of the two forms."""
    stream.expect("[")
    elements: list[ast.AnnotationElement] = []
    while stream.kind not in ("]", "end"):
        start = stream.token
        key = stream.advance() if _at_key(stream) else None
        if key is not None:
            stream.expect("=")
        if elements and (elements[0].name is None) != (key is None):
            raise stream.unexpected("'key=value' throughout or nowhere", "in this annotation")
        expression = parse_expression(stream)
        elements.append(ast.AnnotationElement(stream.span(start), key.text if key is not None else None, expression))
        if not stream.accept(","):
            break
    stream.expect("]", "after the annotation")
    annotation = ast.Annotation(stream.span(first), name.text, [], elements)
    stream.structured_annotations.append(annotation)
    return annotation


def _at_key(stream: TokenStream) -> bool:
    return stream.peek().kind == "=" and stream.token.text.isidentifier()


def _pragma(stream: TokenStream, marker: Token) -> tuple[Token, list[Token]]:
    """`@pragma name tokens`, to the end of the line."""
    line = marker.line_column()[0]
    name = stream.advance()
    body: list[Token] = []
    while stream.kind != "end" and stream.token.line_column()[0] == line:
        body.append(stream.advance())
    return name, body


def _balanced(stream: TokenStream) -> list[Token]:
    """The tokens between parentheses; other brackets need not match."""
    opening = stream.advance()
    depth = 1
    body: list[Token] = []
    while True:
        if stream.kind == "end":
            stream.diagnostics.error("this annotation is not closed", opening)
            return body
        depth += {"(": 1, ")": -1}.get(stream.kind, 0)
        if depth == 0:
            stream.advance()
            return body
        body.append(stream.advance())
