"""Parsing of parser states (specification, section 13.4)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.keysets import parse_keyset
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.statements import parse_statement_or_skip
from weft.compiler.parser.stream import TokenStream
from weft.compiler.source import Span


def parse_state(stream: TokenStream, annotations: ast.Annotations) -> ast.StateDeclaration:
    """`state name { statements transition … }`."""
    first = stream.advance()
    name = stream.expect("id", "for the state")
    stream.expect("{", f"of state '{name.text}'")
    statements: list[ast.Node] = []
    transition: ast.Name | ast.Select | None = None
    with stream.scope():
        while stream.kind not in ("}", "transition", "end"):
            parse_statement_or_skip(stream, statements)
        if stream.accept("transition"):
            transition = _transition(stream)
    stream.expect("}", f"of state '{name.text}'")
    return ast.StateDeclaration(Span(first, name), name.text, annotations, statements, transition)


def _transition(stream: TokenStream) -> ast.Name | ast.Select:
    first = stream.token
    if stream.kind != "select":
        name = stream.expect("id", "or 'select' after 'transition'")
        stream.expect(";", "after the transition")
        return ast.Name(Span(name, name), name.text)
    stream.advance()
    stream.expect("(")
    expressions: list[ast.Expression] = []
    while stream.kind != ")":
        expressions.append(parse_expression(stream))
        if not stream.accept(","):
            break
    stream.expect(")")
    stream.expect("{")
    cases: list[ast.SelectCase] = []
    while stream.kind not in ("}", "end"):
        case_first = stream.token
        keyset = parse_keyset(stream)
        stream.expect(":", "after the key set")
        name = stream.expect("id", "of a state")
        stream.expect(";", "after the state's name")
        state = ast.Name(Span(name, name), name.text)
        cases.append(ast.SelectCase(stream.span(case_first), keyset, state))
    stream.expect("}", "after the cases")
    span = stream.span(first)
    stream.accept(";")
    return ast.Select(span, expressions, cases)
