"""Parsing of controls, parsers and packages (specification, sections 13, 14, 15)."""

from __future__ import annotations

from dataclasses import dataclass

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.base import TYPE, VALUE
from weft.compiler.parser.tables import TableParser
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


class BlockParser(TableParser):
    """Blocks with what is declared in them; the declaration parser completes it."""

    def parse_action(self, annotations: ast.Annotations) -> ast.ActionDeclaration:
        """action name(parameters) block."""
        first = self.expect("action")
        name = self.expect("id", "for the action")
        self.declare(name.text, VALUE)
        with self.scope():
            parameters = self.parse_parameters()
            body = self.parse_block()
        return ast.ActionDeclaration(Span(first, name), name.text, annotations, parameters, body)

    def _block_head(self, annotations: ast.Annotations) -> _BlockHead:
        """What controls and parsers begin with, in the scope that is open: `parser P<T>(…)(…)`, up to `{` or `;`."""
        first = self.advance()
        name = self.expect("id", f"for the {first.kind}")
        self.scopes[-2][name.text] = TYPE
        type_parameters = self.parse_type_parameters()
        parameters = self.parse_parameters()
        span = Span(first, name)
        if self.accept(";"):
            return _BlockHead(span, name, annotations, type_parameters, parameters, [], has_body=False)
        constructor = self.parse_parameters() if self.kind == "(" else []
        self.expect("{", f"of {first.kind} '{name.text}'")
        return _BlockHead(span, name, annotations, type_parameters, parameters, constructor, has_body=True)

    def _parser(self, annotations: ast.Annotations) -> ast.ParserDeclaration:
        with self.scope():
            head = self._block_head(annotations)
            local_declarations: list[ast.Declaration] = []
            states: list[ast.StateDeclaration] = []
            while head.has_body and self.kind not in ("}", "end"):
                inner = self.parse_annotations()
                try:
                    if self.kind == "id" and self.token.text == "state" and self.peek().kind == "id":
                        states.append(self._state(inner))
                    else:
                        local_declarations.append(self._local(inner))
                except Refused:
                    self.recover()
            if head.has_body:
                self.expect("}", f"of parser '{head.name.text}'")
        return ast.ParserDeclaration(
            head.span, head.name.text, annotations, head.type_parameters, head.parameters, head.constructor,
            local_declarations, states if head.has_body else None,
        )  # fmt: skip

    def _state(self, annotations: ast.Annotations) -> ast.StateDeclaration:
        first = self.advance()
        name = self.expect("id", "for the state")
        self.expect("{", f"of state '{name.text}'")
        statements: list[ast.Node] = []
        transition: ast.Name | ast.Select | None = None
        with self.scope():
            while self.kind not in ("}", "transition", "end"):
                self.parse_statement_or_skip(statements)
            if self.accept("transition"):
                transition = self._transition()
        self.expect("}", f"of state '{name.text}'")
        return ast.StateDeclaration(Span(first, name), name.text, annotations, statements, transition)

    def _transition(self) -> ast.Name | ast.Select:
        first = self.token
        if self.kind != "select":
            name = self.expect("id", "or 'select' after 'transition'")
            self.expect(";", "after the transition")
            return ast.Name(Span(name, name), name.text)
        self.advance()
        self.expect("(")
        expressions: list[ast.Expression] = []
        while self.kind != ")":
            expressions.append(self.parse_expression())
            if not self.accept(","):
                break
        self.expect(")")
        self.expect("{")
        cases: list[ast.SelectCase] = []
        while self.kind not in ("}", "end"):
            case_first = self.token
            keyset = self.parse_keyset()
            self.expect(":", "after the key set")
            name = self.expect("id", "of a state")
            self.expect(";", "after the state's name")
            state = ast.Name(Span(name, name), name.text)
            cases.append(ast.SelectCase(self.span(case_first), keyset, state))
        self.expect("}", "after the cases")
        span = self.span(first)
        self.accept(";")
        return ast.Select(span, expressions, cases)

    def _local(self, annotations: ast.Annotations) -> ast.Declaration:
        """A declaration local to a parser or control."""
        if self.kind == "const":
            return self.parse_constant(annotations)
        if self.kind == "action":
            return self.parse_action(annotations)
        if self.kind == "table":
            return self.parse_table(annotations)
        if self.kind == "valueset":
            return self._value_set(annotations)
        if self.kind == "id" and self.token.text == "value_set" and self.peek().kind == "<":
            return self._value_set(annotations)
        if not self.at_type() and not (self.kind == "id" and self.peek().kind in ("id", "(", "<")):
            raise self.unexpected("a local declaration")
        return self.parse_variable_or_instance(annotations)

    def _value_set(self, annotations: ast.Annotations) -> ast.ValueSetDeclaration:
        first = self.advance()
        self.expect("<")
        node = self.parse_type()
        self.expect(">")
        self.expect("(")
        size = self.parse_expression()
        self.expect(")")
        name = self.expect("id", "for the value set")
        self.declare(name.text, VALUE)
        self.expect(";")
        return ast.ValueSetDeclaration(self.span(first), name.text, annotations, node, size)

    def _control(self, annotations: ast.Annotations) -> ast.ControlDeclaration:
        with self.scope():
            head = self._block_head(annotations)
            local_declarations: list[ast.Declaration] = []
            body: ast.Block | None = None
            while head.has_body and self.kind not in ("}", "end"):
                inner = self.parse_annotations()
                try:
                    if self.kind == "id" and self.token.text == "apply" and self.peek().kind in ("{", "@"):
                        self.advance()
                        body = self.parse_block(inner + self.parse_annotations())
                        break
                    local_declarations.append(self._local(inner))
                except Refused:
                    self.recover()
            if head.has_body:
                self._end_of_control(head.name, body)
                body = body or ast.Block(head.span, [])
        return ast.ControlDeclaration(
            head.span, head.name.text, annotations, head.type_parameters, head.parameters, head.constructor,
            local_declarations, body,
        )  # fmt: skip

    def _end_of_control(self, name: Token, body: ast.Block | None) -> None:
        if body is None and not self.diagnostics.error_count:
            self.diagnostics.error(f"control '{name.text}' has no apply block", name)
        self.expect("}", f"of control '{name.text}'")

    def _package(self, annotations: ast.Annotations) -> ast.PackageDeclaration:
        first = self.advance()
        name = self.expect("id", "for the package")
        self.declare(name.text, TYPE)
        with self.scope():
            type_parameters = self.parse_type_parameters()
            parameters = self.parse_parameters()
        self.expect(";", "after the package")
        return ast.PackageDeclaration(Span(first, name), name.text, annotations, type_parameters, parameters)
