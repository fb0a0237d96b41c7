"""Parsing of tables (specification, section 14.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.base import VALUE
from weft.compiler.parser.statements import StatementParser
from weft.compiler.source import Span

_LISTS = ("key", "actions", "entries")


class TableParser(StatementParser):
    """Tables and their properties."""

    def parse_table(self, annotations: ast.Annotations) -> ast.TableDeclaration:
        """table name { properties }."""
        first = self.expect("table")
        name = self.expect("id", "for the table")
        self.declare(name.text, VALUE)
        table = ast.TableDeclaration(Span(first, name), name.text, annotations, [], [], None, False, {})
        seen: dict[str, Span] = {}
        self.expect("{", f"of table '{name.text}'")
        while self.kind not in ("}", "end"):
            try:
                self._property(table, seen)
            except Refused:
                self.skip_to(";", "}")
                self.accept(";")
        self.expect("}", f"of table '{name.text}'")
        return table

    def _property(self, table: ast.TableDeclaration, seen: dict[str, Span]) -> None:
        first = self.token
        annotations = self.parse_annotations()
        is_const = self.accept("const") is not None
        name = self.expect("id", "of a table property")
        word = name.text
        if word in seen:
            self.diagnostics.error(f"property '{word}' is given twice", name).note(
                "first given here", seen[word]
            )
        seen[word] = Span(name, name)
        table.given.add(word)
        self.expect("=", f"after '{word}'")
        if word in _LISTS and self.kind == "{":
            if word == "key" and "entries" in seen:
                self.diagnostics.error("the key of a table stands before its entries", name)
            if word == "key":
                table.keys = self._keys()
            elif word == "actions":
                table.actions = self._actions()
            else:
                table.entries = self._entries()
                table.entries_const = is_const
            return
        expression = self.parse_expression()
        self.expect(";", f"after property '{word}'")
        table.properties[word] = ast.TableProperty(self.span(first), word, annotations, expression, is_const)

    def _keys(self) -> list[ast.KeyElement]:
        self.expect("{")
        keys: list[ast.KeyElement] = []
        while self.kind not in ("}", "end"):
            first = self.token
            expression = self.parse_expression()
            self.expect(":", "before the match kind")
            kind = self.expect("id", "of a match kind")
            annotations = self.parse_annotations()
            self.expect(";", "after the key")
            match_kind = ast.Name(Span(kind, kind), kind.text)
            keys.append(ast.KeyElement(self.span(first), expression, match_kind, annotations))
        self.expect("}", "after the keys")
        return keys

    def _actions(self) -> list[ast.ActionReference]:
        self.expect("{")
        actions: list[ast.ActionReference] = []
        while self.kind not in ("}", "end"):
            first = self.token
            annotations = self.parse_annotations()
            is_const = self.accept("const") is not None
            call = self.parse_expression()
            self.expect(";", "after the action")
            actions.append(ast.ActionReference(self.span(first), call, annotations, is_const))
        self.expect("}", "after the actions")
        return actions

    def _entries(self) -> list[ast.TableEntry]:
        self.expect("{")
        entries: list[ast.TableEntry] = []
        while self.kind not in ("}", "end"):
            first = self.token
            is_const = self.accept("const") is not None
            priority: ast.Expression | None = None
            if self.kind == "id" and self.token.text == "priority" and self.peek().kind == "=":
                self.advance()
                self.advance()
                priority = self.parse_expression()
                self.expect(":", "after the priority")
            keyset = self.parse_keyset()
            self.expect(":", "after the key set")
            action = self.parse_expression()
            annotations = self.parse_annotations()
            self.expect(";", "after the entry")
            entries.append(ast.TableEntry(self.span(first), is_const, keyset, action, priority, annotations))
        self.expect("}", "after the entries")
        return entries
