"""Parsing of statements: the dispatch and the simple ones (specification, section 12)."""

from __future__ import annotations

from weft.compiler import ast
from weft.compiler.diagnostics import Refused
from weft.compiler.lexer import KEYWORDS
from weft.compiler.parser.annotations import parse_annotations
from weft.compiler.parser.precedence import parse_expression, parse_postfix, parse_primary
from weft.compiler.parser.stream import TokenStream
from weft.compiler.parser.types import at_type
from weft.compiler.source import Token

_NO_STATEMENTS = frozenset(["action", "control", "extern", "package", "parser", "struct", "table"])
_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|="])


def parse_block(stream: TokenStream, annotations: ast.Annotations | None = None) -> ast.Block:
    """`{` statements `}`; a broken statement is reported and skipped."""
    opening = stream.expect("{")
    statements: list[ast.Node] = []
    with stream.scope():
        while stream.kind != "}":
            if stream.kind == "end":
                stream.diagnostics.error("this block is not closed: expected '}'", opening)
                break
            if _at_end_of_block(stream):
                _report_unclosed(stream, opening)
                break
            parse_statement_or_skip(stream, statements)
        else:
            stream.advance()
    return ast.Block(stream.span(opening), statements, annotations or [])


def parse_statement_or_skip(stream: TokenStream, statements: list[ast.Node]) -> None:
    """Append the next statement; a broken one is reported and skipped, always by a token at least."""
    before = stream.index
    try:
        statements.append(parse_statement(stream))
    except Refused:
        stream.recover()
        if stream.index == before:
            stream.advance()


def parse_statement(stream: TokenStream) -> ast.Node:
    """A statement, or a constant, variable or instance declaration."""
    stream.descend()
    try:
        return _statement(stream)
    finally:
        stream.ascend()


def parse_branch(stream: TokenStream) -> ast.Statement:
    """The statement of a branch or loop, in a scope of its own."""
    with stream.scope():
        node = parse_statement(stream)
    if not isinstance(node, ast.Statement):
        stream.diagnostics.error("a declaration cannot be the whole branch; put it in braces", node.span)
        return ast.Empty(node.span)
    return node


def parse_assignment_or_call(stream: TokenStream) -> ast.Statement:
    """An assignment or a call, without the semicolon."""
    first = stream.token
    target = parse_postfix(stream, parse_primary(stream))
    if stream.kind in _ASSIGNMENTS:
        operator = stream.advance().kind[:-1]
        expression = parse_expression(stream)
        return ast.Assignment(stream.span(first), target, operator, expression)
    if stream.kind == ">" and stream.peek().kind == ">=":
        stream.advance()
        stream.advance()
        return ast.Assignment(stream.span(first), target, ">>", parse_expression(stream))
    if not isinstance(target, ast.Call):
        raise stream.unexpected("'=' or a call's '('", "in the statement")
    return ast.CallStatement(stream.span(first), target)


def at_declaration(stream: TokenStream) -> bool:
    """Whether a type begins here that does not belong to an expression."""
    return at_type(stream) and not _type_in_expression(stream)


def parse_return(stream: TokenStream, annotations: ast.Annotations) -> ast.Return:
    """`return;` or `return expression;`."""
    first = _start(stream, annotations)
    stream.advance()
    expression = None if stream.kind == ";" else parse_expression(stream)
    stream.expect(";", "after 'return'")
    return ast.Return(stream.span(first), expression)


def parse_jump(stream: TokenStream, annotations: ast.Annotations) -> ast.Statement:
    """`exit;`, `break;` or `continue;`."""
    first = _start(stream, annotations)
    word = stream.advance().kind
    stream.expect(";", f"after '{word}'")
    kinds = {"exit": ast.Exit, "break": ast.Break, "continue": ast.Continue}
    return kinds[word](stream.span(first))


def parse_empty(stream: TokenStream, annotations: ast.Annotations) -> ast.Empty:
    """A lone semicolon."""
    first = _start(stream, annotations)
    stream.advance()
    return ast.Empty(stream.span(first))


def _start(stream: TokenStream, annotations: ast.Annotations) -> Token:
    """The first token of a statement, its annotations included."""
    return annotations[0].span.first if annotations else stream.token


def _at_end_of_block(stream: TokenStream) -> bool:
    """At what no block can hold; so its '}' is missing, and what follows is best read as if it were there."""
    begins_declaration = stream.peek().kind == "id" or stream.peek().kind in KEYWORDS
    return (stream.kind in _NO_STATEMENTS and begins_declaration) or (
        stream.kind == "apply" and stream.peek().kind == "{"
    )


def _report_unclosed(stream: TokenStream, opening: Token) -> None:
    if stream.unclosed_before == stream.index:
        return  # the inner block has reported it
    stream.unclosed_before = stream.index
    stream.diagnostics.error(f"expected '}}' before '{stream.token.text}', which no block can hold", stream.token).note(
        "this block is not closed", opening
    )


def _statement(stream: TokenStream) -> ast.Node:
    annotations = parse_annotations(stream)
    rule = stream.statements.get(stream.kind)
    if rule is not None:
        return rule(stream, annotations)
    # Two names in a row: the first one was meant as a type.
    unknown_type = stream.kind == "id" and stream.peek().kind == "id"
    if unknown_type or at_declaration(stream):
        return stream.parse_local_declaration(stream, annotations)
    found = parse_assignment_or_call(stream)
    stream.expect(";", "after the statement")
    return found


def _type_in_expression(stream: TokenStream) -> bool:
    """Whether the type here is the left of a dot: `Control.apply(…)`, `Control<…>.apply(…)`, `error.X`."""
    index = stream.index
    if stream.tokens[index].kind == ".":
        index += 1
    index += 1
    if stream.tokens[index].kind == "<":
        depth = 0
        while stream.tokens[index].kind not in ("end", ";"):
            if stream.tokens[index].kind == "<":
                depth += 1
            elif stream.tokens[index].kind == ">":
                depth -= 1
                if depth == 0:
                    index += 1
                    break
            index += 1
    return stream.tokens[index].kind == "."
