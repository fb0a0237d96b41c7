"""Parsing of statements (specification, section 12)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import CHAIN_LENGTH, exceeded
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.base import VALUE
from weft.compiler.parser.expressions import ExpressionParser
from weft.compiler.source import Span, Token

_NO_STATEMENTS = frozenset(["action", "control", "extern", "package", "parser", "struct", "table"])
_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="])


class StatementParser(ExpressionParser):
    """Statements and the declarations allowed among them."""

    unclosed_before: int | None = None
    """The token before which a missing '}' was told last."""

    def parse_block(self, annotations: ast.Annotations | None = None) -> ast.Block:
        """`{` statements `}`; a broken statement is reported and skipped."""
        opening = self.expect("{")
        statements: list[ast.Node] = []
        with self.scope():
            while self.kind != "}":
                if self.kind == "end":
                    self.diagnostics.error("this block is not closed: expected '}'", opening)
                    break
                if self._at_declaration_only():
                    self._tell_unclosed(opening)
                    break
                self.parse_statement_or_skip(statements)
            else:
                self.advance()
        return ast.Block(self.span(opening), statements, annotations or [])

    def _at_declaration_only(self) -> bool:
        """At what no block can hold; so its '}' is missing, and what follows is best read as if it were there."""
        return self.kind in _NO_STATEMENTS or (self.kind == "apply" and self.peek().kind == "{")

    def _tell_unclosed(self, opening: Token) -> None:
        if self.unclosed_before == self.index:
            return  # the block within has told it
        self.unclosed_before = self.index
        self.diagnostics.error(
            f"expected '}}' before '{self.token.text}', which no block can hold", self.token
        ).note("this block is not closed", opening)

    def parse_statement_or_skip(self, statements: list[ast.Node]) -> None:
        """Append the next statement; a broken one is reported and skipped, always by a token at least."""
        before = self.index
        try:
            statements.append(self.parse_statement())
        except Refused:
            self.recover()
            if self.index == before:
                self.advance()

    def parse_statement(self) -> ast.Node:
        """A statement, or a constant, variable or instance declaration."""
        self.descend()
        try:
            return self._statement()
        finally:
            self.nesting -= 1

    def _statement(self) -> ast.Node:
        first = self.token
        annotations = self.parse_annotations()
        kind = self.kind
        if kind == "{":
            return self.parse_block(annotations)
        if kind == "if":
            return self._if()
        if kind == "const":
            return self.parse_constant(annotations)
        if kind == "return":
            self.advance()
            expression = None if self.kind == ";" else self.parse_expression()
            self.expect(";", "after 'return'")
            return ast.Return(self.span(first), expression)
        if kind == "switch":
            return self._switch()
        if kind == "for":
            return self._for()
        simple = {"exit": ast.Exit, "break": ast.Break, "continue": ast.Continue}.get(kind)
        if simple is not None:
            self.advance()
            self.expect(";", f"after '{kind}'")
            return simple(self.span(first))
        if kind == ";":
            self.advance()
            return ast.Empty(self.span(first))
        # Two names in a row: the first one was meant as a type.
        unknown_type = self.kind == "id" and self.peek().kind == "id"
        if unknown_type or (self.at_type() and not self._type_in_expression()):
            return self.parse_variable_or_instance(annotations)
        statement = self._assignment_or_call()
        self.expect(";", "after the statement")
        return statement

    def _type_in_expression(self) -> bool:
        """`Control.apply(…)`, `Control<…>.apply(…)`, `error.X`."""
        index = self.index
        if self.tokens[index].kind == ".":
            index += 1
        index += 1
        if self.tokens[index].kind == "<":
            depth = 0
            while self.tokens[index].kind not in ("end", ";"):
                if self.tokens[index].kind == "<":
                    depth += 1
                elif self.tokens[index].kind == ">":
                    depth -= 1
                    if depth == 0:
                        index += 1
                        break
                index += 1
        return self.tokens[index].kind == "."

    def _assignment_or_call(self) -> ast.Statement:
        first = self.token
        target = self._postfix(self._primary())
        if self.kind in _ASSIGNMENTS:
            operator = self.advance().kind[:-1]
            expression = self.parse_expression()
            return ast.Assignment(self.span(first), target, operator, expression)
        if self.kind == ">" and self.peek().kind == ">=":
            self.advance()
            self.advance()
            return ast.Assignment(self.span(first), target, ">>", self.parse_expression())
        if not isinstance(target, ast.Call):
            raise self.unexpected("'=' or a call's '('", "in the statement")
        return ast.CallStatement(self.span(first), target)

    def _if(self) -> ast.If:
        """`if … else if … else …`: a chain, whatever its length, is no deeper than its parts."""
        opened: list[tuple[Token, ast.Expression, ast.Statement]] = []
        otherwise: ast.Statement | None = None
        while True:
            first = self.expect("if")
            self.expect("(", "after 'if'")
            condition = self.parse_expression()
            self.expect(")", "after the condition")
            opened.append((first, condition, self._branch()))
            if len(opened) > CHAIN_LENGTH:
                exceeded(self.diagnostics, f"an 'if … else if' has more than {CHAIN_LENGTH} branches", first)
            if not self.accept("else"):
                break
            if self.kind != "if":
                otherwise = self._branch()
                break
        for first, condition, then in reversed(opened):
            otherwise = ast.If(self.span(first), condition, then, otherwise)
        assert isinstance(otherwise, ast.If)
        return otherwise

    def _branch(self) -> ast.Statement:
        with self.scope():
            statement = self.parse_statement()
        if not isinstance(statement, ast.Statement):
            self.diagnostics.error(
                "a declaration cannot be the whole branch; put it in braces", statement.span
            )
            return ast.Empty(statement.span)
        return statement

    def _switch(self) -> ast.Switch:
        first = self.expect("switch")
        self.expect("(")
        selector = self.parse_expression()
        self.expect(")")
        self.expect("{")
        cases: list[ast.SwitchCase] = []
        while self.kind not in ("}", "end"):
            label_first = self.token
            label: ast.Expression | None
            if self.kind == "default":
                self.advance()
                label = None
            else:
                label = self.parse_expression()
            self.expect(":", "after the label")
            body = self.parse_block() if self.kind == "{" else None
            cases.append(ast.SwitchCase(self.span(label_first), label, body))
        self.expect("}", "after the cases")
        return ast.Switch(self.span(first), selector, cases)

    def _for(self) -> ast.Statement:
        first = self.expect("for")
        self.expect("(")
        with self.scope():
            annotations = self.parse_annotations()
            if self._at_for_in():
                return self._for_in(first, annotations)
            initialisers: list[ast.Node] = []
            while self.kind != ";":
                initialisers.append(self._for_initialiser())
                if not self.accept(","):
                    break
            self.expect(";", "after the initialisers")
            condition = self.parse_expression()
            self.expect(";", "after the condition")
            updates: list[ast.Statement] = []
            while self.kind != ")":
                updates.append(self._assignment_or_call())
                if not self.accept(","):
                    break
            self.expect(")")
            body = self._branch()
            return ast.For(self.span(first), initialisers, condition, updates, body)

    def _at_for_in(self) -> bool:
        depth = 0
        for index in range(self.index, len(self.tokens)):
            kind = self.tokens[index].kind
            if kind == "in" and depth == 0:
                return True
            if kind in (";", "end", "{"):
                return False
            depth += {"(": 1, ")": -1}.get(kind, 0)
            if depth < 0:
                return False
        return False

    def _for_in(self, first: Token, annotations: ast.Annotations) -> ast.ForIn:
        start = self.token
        if not self.at_type():
            raise self.unexpected("a type", "before the loop's variable")
        node = self.parse_type()
        name = self.expect("id")
        self.declare(name.text, VALUE)
        variable = ast.VariableDeclaration(self.span(start), name.text, annotations, node, None)
        self.expect("in")
        collection_first = self.token
        collection = self.parse_expression()
        if self.kind == "..":
            self.advance()
            high = self.parse_expression()
            collection = ast.Binary(self.span(collection_first), "..", collection, high)
        self.expect(")")
        body = self._branch()
        return ast.ForIn(self.span(first), variable, collection, body)

    def _for_initialiser(self) -> ast.Node:
        first = self.token
        annotations = self.parse_annotations()
        if not self.at_type() or self._type_in_expression():
            return self._assignment_or_call()
        node = self.parse_type()
        name = self.expect("id")
        self.declare(name.text, VALUE)
        initial = self.parse_expression() if self.accept("=") else None
        return ast.VariableDeclaration(self.span(first), name.text, annotations, node, initial)

    # ------------------------------------------------------------------------------ declarations

    def parse_constant(self, annotations: ast.Annotations) -> ast.ConstantDeclaration:
        """const type name = expression;"""
        first = self.expect("const")
        node = self.parse_type()
        name = self.expect("id", "for the constant")
        self.declare(name.text, VALUE)
        self.expect("=", "after the constant's name")
        initial = self.parse_expression()
        self.expect(";", "after the constant")
        return ast.ConstantDeclaration(self.span(first), name.text, annotations, node, initial)

    def parse_variable_or_instance(self, annotations: ast.Annotations) -> ast.Declaration:
        """type name = expression; or type(arguments) name;"""
        first = self.token
        node = self.parse_type()
        if self.kind == "(":
            return self.parse_instance(annotations, node)
        name = self.expect("id", "after the type")
        self.declare(name.text, VALUE)
        initial = self.parse_expression() if self.accept("=") else None
        self.expect(";", "after the declaration")
        return ast.VariableDeclaration(self.span(first), name.text, annotations, node, initial)

    def parse_instance(self, annotations: ast.Annotations, node: ast.TypeNode) -> ast.InstanceDeclaration:
        """The rest of an instantiation after its type."""
        arguments = self.parse_arguments()
        name = self.expect("id", "for the instance")
        block: list[ast.Declaration] | None = None
        if self.accept("="):
            self.expect("{")
            block = []
            while self.kind not in ("}", "end"):
                block.append(self.parse_abstract_body())
            self.expect("}")
        self.expect(";", "after the instance")
        self.declare(name.text, VALUE)
        span = Span(node.span.first, self.tokens[self.index - 1])
        return ast.InstanceDeclaration(span, name.text, annotations, node, arguments, block)

    def parse_abstract_body(self) -> ast.Declaration:
        """A function or an instance inside an instantiation's block."""
        raise NotImplementedError
