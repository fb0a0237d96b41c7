"""Parsing of tables (specification, section 14.2)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.keysets import parse_keyset
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.stream import VALUE, TokenStream
from weft.compiler.source import Span

_LISTS = ("key", "actions", "entries")


def parse_table(stream: TokenStream, annotations: ast.Annotations) -> ast.TableDeclaration:
    """table name { properties }."""
    first = stream.expect("table")
    name = stream.expect("id", "for the table")
    stream.declare(name.text, VALUE)
    table = ast.TableDeclaration(Span(first, name), name.text, annotations, [], [], None, False, {})
    seen: dict[str, Span] = {}
    stream.expect("{", f"of table '{name.text}'")
    while stream.kind not in ("}", "end"):
        try:
            _property(stream, table, seen)
        except Refused:
            stream.skip_to(";", "}")
            stream.accept(";")
    stream.expect("}", f"of table '{name.text}'")
    return table


def _property(stream: TokenStream, table: ast.TableDeclaration, seen: dict[str, Span]) -> None:
    first = stream.token
    annotations = parse_annotations(stream)
    is_const = stream.accept("const") is not None
    name = stream.expect("id", "of a table property")
    word = name.text
    if word in seen:
        stream.diagnostics.error(f"property '{word}' is given twice", name).note("first given here", seen[word])
    seen[word] = Span(name, name)
    table.given.add(word)
    stream.expect("=", f"after '{word}'")
    if word in _LISTS and stream.kind == "{":
        if word == "key" and "entries" in seen:
            stream.diagnostics.error("the key of a table stands before its entries", name)
        if word == "key":
            table.keys = _keys(stream)
        elif word == "actions":
            table.actions = _actions(stream)
        else:
            table.entries = _entries(stream)
            table.entries_const = is_const
        return
    expression = parse_expression(stream)
    stream.expect(";", f"after property '{word}'")
    table.properties[word] = ast.TableProperty(stream.span(first), word, annotations, expression, is_const)


def _keys(stream: TokenStream) -> list[ast.KeyElement]:
    stream.expect("{")
    keys: list[ast.KeyElement] = []
    while stream.kind not in ("}", "end"):
        first = stream.token
        expression = parse_expression(stream)
        stream.expect(":", "before the match kind")
        kind = stream.expect("id", "of a match kind")
        annotations = parse_annotations(stream)
        stream.expect(";", "after the key")
        match_kind = ast.Name(Span(kind, kind), kind.text)
        keys.append(ast.KeyElement(stream.span(first), expression, match_kind, annotations))
    stream.expect("}", "after the keys")
    return keys


def _actions(stream: TokenStream) -> list[ast.ActionReference]:
    stream.expect("{")
    actions: list[ast.ActionReference] = []
    while stream.kind not in ("}", "end"):
        first = stream.token
        annotations = parse_annotations(stream)
        is_const = stream.accept("const") is not None
        call = parse_expression(stream)
        stream.expect(";", "after the action")
        actions.append(ast.ActionReference(stream.span(first), call, annotations, is_const))
    stream.expect("}", "after the actions")
    return actions


def _entries(stream: TokenStream) -> list[ast.TableEntry]:
    stream.expect("{")
    entries: list[ast.TableEntry] = []
    while stream.kind not in ("}", "end"):
        first = stream.token
        is_const = stream.accept("const") is not None
        priority: ast.Expression | None = None
        if stream.kind == "id" and stream.token.text == "priority" and stream.peek().kind == "=":
            stream.advance()
            stream.advance()
            priority = parse_expression(stream)
            stream.expect(":", "after the priority")
        keyset = parse_keyset(stream)
        stream.expect(":", "after the key set")
        action = parse_expression(stream)
        annotations = parse_annotations(stream)
        stream.expect(";", "after the entry")
        entries.append(ast.TableEntry(stream.span(first), is_const, keyset, action, priority, annotations))
    stream.expect("}", "after the entries")
    return entries
