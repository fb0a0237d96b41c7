"""Parsing of types, parameters and type arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.compiler import ast
from weft.compiler.parser.annotations import AnnotationParser
from weft.compiler.parser.base import TYPE, VALUE

if TYPE_CHECKING:
    from weft.compiler.ast import Expression

_BASE_TYPES = frozenset(["bool", "error", "match_kind", "string", "void"])
_TYPE_STARTERS = _BASE_TYPES | {"bit", "int", "varbit", "tuple"}


class TypeParser(AnnotationParser):
    """Types; the expression parser completes it."""

    def parse_width(self) -> Expression:
        """The width inside `bit<…>`: an integer, a name or a parenthesised expression."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------- types

    def at_type(self) -> bool:
        """Whether a type begins here."""
        kind = self.kind
        if kind == "id":
            return self.is_type_name(self.token.text) or (
                self.token.text == "list" and self.peek().kind == "<"
            )
        if kind == ".":
            return self.peek().kind == "id" and self.scopes[0].get(self.peek().text) == TYPE
        return kind in _TYPE_STARTERS

    def parse_type(self) -> ast.TypeNode:
        """A type reference."""
        self.descend()
        try:
            return self._type()
        finally:
            self.nesting -= 1

    def _type(self) -> ast.TypeNode:
        first = self.token
        kind = self.kind
        node: ast.TypeNode
        if kind in ("bit", "int", "varbit"):
            node = self._bits()
        elif kind in _BASE_TYPES:
            self.advance()
            node = ast.BaseTypeNode(self.span(first), kind)
        elif kind == "_":
            self.advance()
            node = ast.BaseTypeNode(self.span(first), "_")
        elif kind == "tuple" or (self.token.text == "list" and self.peek().kind == "<"):
            self.advance()
            base = ast.NamedTypeNode(self.span(first), first.text)
            node = ast.SpecializedTypeNode(base.span, base, self.parse_type_arguments())
            node.span = self.span(first)
        elif kind == "." or kind == "id":
            node = self._named()
        else:
            raise self.unexpected("a type")
        stacks = 0
        while self.kind == "[":
            self.descend()
            self.advance()
            size = self.parse_expression()
            self.expect("]")
            node = ast.StackTypeNode(self.span(first), node, size)
            stacks += 1
        self.nesting -= stacks
        return node

    def _bits(self) -> ast.TypeNode:
        first = self.advance()
        width: Expression | None = None
        if self.kind == "<":
            self.advance()
            width = self.parse_width()
            self.expect_closing_angle()
        elif first.kind == "int":
            return ast.BaseTypeNode(self.span(first), "int")
        elif first.kind == "varbit":
            raise self.unexpected("'<'", "after 'varbit'")
        return ast.BitsTypeNode(self.span(first), first.kind, width)

    def _named(self) -> ast.TypeNode:
        first = self.token
        absolute = self.accept(".") is not None
        if self.kind == "id" and not self.is_type_name(self.token.text) and not absolute:
            known = self._nearest_type(self.token.text)
            hint = f"; did you mean '{known}'?" if known else ""
            self.diagnostics.error(f"'{self.token.text}' is not a type{hint}", self.token)
            self.declare(self.token.text, TYPE)
        name = self.expect("id")
        base = ast.NamedTypeNode(self.span(first), name.text, absolute)
        if self.kind == "<":
            arguments = self.parse_type_arguments()
            return ast.SpecializedTypeNode(self.span(first), base, arguments)
        return base

    def _nearest_type(self, name: str) -> str | None:
        from difflib import get_close_matches

        types = [known for scope in self.scopes for known, what in scope.items() if what == TYPE]
        matches = get_close_matches(name, types, 1, 0.75)
        return matches[0] if matches else None

    def parse_type_arguments(self) -> list[ast.TypeNode]:
        """`<` type, … `>`."""
        self.expect("<")
        arguments: list[ast.TypeNode] = []
        if self.kind != ">":
            arguments.append(self.parse_type())
            while self.accept(","):
                arguments.append(self.parse_type())
        self.expect_closing_angle()
        return arguments

    def expect_closing_angle(self) -> None:
        """`>`."""
        self.expect(">")

    def parse_type_parameters(self) -> list[ast.TypeParameter]:
        """Optional `<A, B>`; declares the names as types in the current scope."""
        parameters: list[ast.TypeParameter] = []
        if not self.accept("<"):
            return parameters
        while True:
            annotations = self.parse_annotations()
            name = self.expect("id")
            self.declare(name.text, TYPE)
            parameters.append(ast.TypeParameter(self.span(name), name.text, annotations))
            if not self.accept(","):
                break
        self.expect(">")
        return parameters

    def parse_parameters(self) -> list[ast.Parameter]:
        """`(` parameters `)`; declares their names in the current scope."""
        self.expect("(")
        parameters: list[ast.Parameter] = []
        while self.kind != ")":
            parameters.append(self._parameter())
            if not self.accept(","):
                break
        self.expect(")", "after the parameters")
        return parameters

    def _parameter(self) -> ast.Parameter:
        first = self.token
        annotations = self.parse_annotations()
        direction = ""
        if self.kind in ("in", "out", "inout"):
            direction = self.advance().kind
        node = self.parse_type()
        name = self.expect("id", "for the parameter")
        self.declare(name.text, VALUE)
        default = self.parse_expression() if self.accept("=") else None
        return ast.Parameter(self.span(first), name.text, annotations, direction, node, default)
