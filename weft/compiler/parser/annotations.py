"""Parsing of annotations (specification, section 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.compiler import ast
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.parser.base import TokenStream
from weft.compiler.source import Token

if TYPE_CHECKING:
    from weft.compiler.ast import Expression


class AnnotationParser(TokenStream):
    """`parse_annotations`; the expression parser completes it."""

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics) -> None:
        super().__init__(tokens, diagnostics)
        self.structured_annotations: list[ast.Annotation] = []

    def parse_expression(self) -> Expression:
        """An expression."""
        raise NotImplementedError

    def parse_annotations(self) -> ast.Annotations:
        """Any number of annotations."""
        annotations: ast.Annotations = []
        while self.kind == "@":
            first = self.advance()
            name = self.advance()
            if self.kind == "[":
                annotation = self._structured(first, name)
                if any(each.name == name.text for each in annotations):
                    self.diagnostics.error(f"the annotation '@{name.text}' stands here twice", name)
            else:
                body: list[Token] = []
                if name.text == "pragma" and self.kind != "(":
                    name, body = self._pragma(name)
                elif self.kind == "(":
                    body = self._balanced()
                annotation = ast.Annotation(self.span(first), name.text, body)
            annotations.append(annotation)
        return annotations

    def _structured(self, first: Token, name: Token) -> ast.Annotation:
        """`@name[1, "two"]` or `@name[key=value, …]`: one of the two forms."""
        self.expect("[")
        elements: list[ast.AnnotationElement] = []
        while self.kind not in ("]", "end"):
            start = self.token
            key = self.advance() if self._at_key() else None
            if key is not None:
                self.expect("=")
            if elements and (elements[0].name is None) != (key is None):
                raise self.unexpected("'key=value' throughout or nowhere", "in this annotation")
            expression = self.parse_expression()
            elements.append(
                ast.AnnotationElement(self.span(start), key.text if key is not None else None, expression)
            )
            if not self.accept(","):
                break
        self.expect("]", "after the annotation")
        annotation = ast.Annotation(self.span(first), name.text, [], elements)
        self.structured_annotations.append(annotation)
        return annotation

    def _at_key(self) -> bool:
        return self.peek().kind == "=" and self.token.text.isidentifier()

    def _pragma(self, marker: Token) -> tuple[Token, list[Token]]:
        """`@pragma name tokens`, to the end of the line."""
        line = marker.line_column()[0]
        name = self.advance()
        body: list[Token] = []
        while self.kind != "end" and self.token.line_column()[0] == line:
            body.append(self.advance())
        return name, body

    def _balanced(self) -> list[Token]:
        """The tokens between parentheses; other brackets need not match."""
        opening = self.advance()
        depth = 1
        body: list[Token] = []
        while True:
            if self.kind == "end":
                self.diagnostics.error("this annotation is not closed", opening)
                return body
            depth += {"(": 1, ")": -1}.get(self.kind, 0)
            if depth == 0:
                self.advance()
                return body
            body.append(self.advance())
