"""Parsing of `if` and `switch` (specification, sections 12.6, 12.7)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.budgets import CHAIN_LENGTH, exceeded
from weft.compiler.parser.precedence import parse_expression
from weft.compiler.parser.statements import parse_block, parse_branch
from weft.compiler.parser.stream import TokenStream
from weft.compiler.source import Token


def parse_if(stream: TokenStream, annotations: ast.Annotations) -> ast.If:
    """`if … else if … else …`: a chain, whatever its length, is no deeper than its parts."""
    opened: list[tuple[Token, ast.Expression, ast.Statement]] = []
    otherwise: ast.Statement | None = None
    while True:
        first = stream.expect("if")
        stream.expect("(", "after 'if'")
        condition = parse_expression(stream)
        stream.expect(")", "after the condition")
        opened.append((first, condition, parse_branch(stream)))
        if len(opened) > CHAIN_LENGTH:
            exceeded(stream.diagnostics, f"an 'if … else if' has more than {CHAIN_LENGTH} branches", first)
        if not stream.accept("else"):
            break
        if stream.kind != "if":
            otherwise = parse_branch(stream)
            break
    for first, condition, then in reversed(opened):
        otherwise = ast.If(stream.span(first), condition, then, otherwise)
    assert isinstance(otherwise, ast.If)
    return otherwise


def parse_switch(stream: TokenStream, annotations: ast.Annotations) -> ast.Switch:
    """`switch (selector) { label: block … }`."""
    first = stream.expect("switch")
    stream.expect("(")
    selector = parse_expression(stream)
    stream.expect(")")
    stream.expect("{")
    cases: list[ast.SwitchCase] = []
    while stream.kind not in ("}", "end"):
        label_first = stream.token
        label: ast.Expression | None
        if stream.kind == "default":
            stream.advance()
            label = None
        else:
            label = parse_expression(stream)
        stream.expect(":", "after the label")
        body = parse_block(stream) if stream.kind == "{" else None
        cases.append(ast.SwitchCase(stream.span(label_first), label, body))
    stream.expect("}", "after the cases")
    return ast.Switch(stream.span(first), selector, cases)
