"""Parsing of operators by precedence (specification, section 8).

This module knows operators and their levels only. What an expression begins with and what may follow it are in the
tables of `grammar`, by the kind of the token: so types, which hold expressions (`bit<W>`, `header[N]`), import this
module, and the functions for expressions that hold types (`(T) x`, `f<T>(x)`) import both.
"""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.parser.stream import TokenStream
from weft.compiler.source import Token

_LEVELS: dict[str, int] = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_PREFIX_OPERATORS = frozenset(["!", "~", "-", "+"])


def parse_expression(stream: TokenStream) -> ast.Expression:
    """An expression, `?:` included."""
    if stream.open_expressions == 0:
        stream.chain_length = 0
    stream.descend()
    stream.open_expressions += 1
    try:
        return _ternaries(stream)
    finally:
        stream.open_expressions -= 1
        stream.ascend()


def parse_width(stream: TokenStream) -> ast.Expression:
    """The width inside `bit<…>`: an integer, a parenthesised expression, or one without `>`, which closes it."""
    if stream.kind == "integer" and stream.peek().kind == ">":
        return parse_primary(stream)
    if stream.kind == "(":
        return _unary(stream)
    return _binary(stream, _LEVELS["+"])


def parse_operand(stream: TokenStream) -> ast.Expression:
    """The operand of a prefix operator or a cast."""
    stream.descend()
    try:
        return _unary(stream)
    finally:
        stream.ascend()


def parse_primary(stream: TokenStream) -> ast.Expression:
    """A name, a literal, a type or an expression in parentheses or braces."""
    rule = stream.primaries.get(stream.kind)
    if rule is None:
        raise stream.unexpected("an expression")
    return rule(stream)


def parse_postfix(stream: TokenStream, expression: ast.Expression) -> ast.Expression:
    """The members, subscripts and calls that follow an expression."""
    while (rule := stream.postfixes.get(stream.kind)) is not None:
        longer = rule(stream, expression)
        if longer is None:
            break
        expression = longer
    return expression


def _ternaries(stream: TokenStream) -> ast.Expression:
    """`a ? b : c ? d : e`, which associates to the right."""
    opened: list[tuple[Token, ast.Expression, ast.Expression]] = []
    while True:
        first = stream.token
        last = _binary(stream, 1)
        if stream.kind != "?":
            break
        stream.advance()
        stream.lengthen_chain()
        yes = parse_expression(stream)
        stream.expect(":", "in '?:'")
        opened.append((first, last, yes))
    for first, condition, yes in reversed(opened):
        last = ast.Ternary(stream.span(first), condition, yes, last)
    return last


def _binary(stream: TokenStream, minimum: int) -> ast.Expression:
    """Infix operators of a level of at least `minimum`."""
    first = stream.token
    left = _unary(stream)
    while True:
        operator = stream.kind
        if operator == ">" and _adjacent_closing(stream):
            operator = ">>"
        level = _LEVELS.get(operator, 0)
        if level < minimum:
            return left
        stream.advance()
        if operator == ">>":
            stream.advance()
        stream.lengthen_chain()
        right = _binary(stream, level + 1)
        left = ast.Binary(stream.span(first), operator, left, right)


def _adjacent_closing(stream: TokenStream) -> bool:
    """Whether the current `>` and the next one are written as `>>`; the lexer leaves them apart for `bit<W>>`."""
    following = stream.peek()
    return (
        following.kind == ">"
        and following.source is stream.token.source
        and following.offset == stream.token.offset + 1
    )


def _unary(stream: TokenStream) -> ast.Expression:
    first = stream.token
    kind = stream.kind
    if kind in _PREFIX_OPERATORS:
        stream.advance()
        operand = parse_operand(stream)
        return ast.Unary(stream.span(first), kind, operand)
    if kind == "(":
        found = stream.parse_cast(stream)
        if found is not None:
            return found
    return parse_postfix(stream, parse_primary(stream))
