"""The parser's context: a cursor over the tokens, the names known to be types, budgets, recovery from errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from weft.compiler import ast
from weft.compiler.budgets import CHAIN_LENGTH, NESTING, exceeded
from weft.compiler.diagnostics import Diagnostics, Refused
from weft.compiler.lexer import KEYWORDS
from weft.compiler.source import Span, Token

# What a name stands for decides how P4_16 is parsed (specification, appendix G: TYPE_IDENTIFIER).
TYPE = "type"
VALUE = "value"


ExpressionRule = Callable[["TokenStream"], ast.Expression]
"""Parses what begins with the current token."""
CastRule = Callable[["TokenStream"], ast.Expression | None]
"""Parses a cast; None if the parenthesis opens none."""
PostfixRule = Callable[["TokenStream", ast.Expression], ast.Expression | None]
"""Parses what follows an expression; None if the current token does not belong to it."""
StatementRule = Callable[["TokenStream", ast.Annotations], ast.Node]
"""Parses a statement, given its annotations."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """Which function parses what begins with a kind of token; `local_declaration` is for what begins with a type."""

    primaries: Mapping[str, ExpressionRule]
    postfixes: Mapping[str, PostfixRule]
    cast: CastRule
    statements: Mapping[str, StatementRule]
    local_declaration: StatementRule


class SyntaxRefused(Refused):
    """A syntax error was reported; the caller resynchronises."""


class TokenStream:
    """The first argument of every function of the parser.

    `token` is the current token and `kind` its kind; `scopes` say what names stand for, innermost last.
    """

    def __init__(self, tokens: list[Token], diagnostics: Diagnostics, grammar: Grammar) -> None:
        self.tokens = tokens
        self.index = 0
        self.token = tokens[0]
        self.kind = self.token.kind
        self.diagnostics = diagnostics
        self.primaries = grammar.primaries
        self.postfixes = grammar.postfixes
        self.parse_cast = grammar.cast
        self.statements = grammar.statements
        self.parse_local_declaration = grammar.local_declaration
        self.scopes: list[dict[str, str]] = [{}]
        self.structured_annotations: list[ast.Annotation] = []
        self.open_expressions = 0
        self.chain_length = 0
        """Operators, members and calls of the outermost open expression."""
        self.unclosed_before: int | None = None
        """Index of the token before which a missing '}' was reported last."""
        self._nesting = 0

    # ------------------------------------------------------------------------------------- tokens

    def advance(self) -> Token:
        """Consume and return the current token."""
        token = self.token
        if self.kind != "end":
            self.index += 1
            following = self.token = self.tokens[self.index]
            self.kind = following.kind
        return token

    def peek(self, distance: int = 1) -> Token:
        """The token `distance` after the current one."""
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    def accept(self, kind: str) -> Token | None:
        """Consume the current token if it is of that kind."""
        if self.kind == kind:
            return self.advance()
        return None

    def expect(self, kind: str, context: str = "") -> Token:
        """Consume a token of that kind or report what was expected."""
        if self.kind == kind:
            return self.advance()
        raise self.unexpected(describe_kind(kind), context)

    def unexpected(self, expected: str, context: str = "") -> SyntaxRefused:
        """Report the current token as wrong; raise the result."""
        where = f" {context}" if context else ""
        found = "the end of the file" if self.kind == "end" else f"'{self.token.text}'"
        if self.kind in KEYWORDS and not _is_quoted(expected):
            found = f"the keyword {found}"
        at = self.token
        previous = self.tokens[self.index - 1] if self.index else at
        diagnostic = self.diagnostics.error(f"expected {expected}{where}, found {found}", at)
        if expected in ("';'", "')'", "'}'", "']'") and previous.line_column()[0] != at.line_column()[0]:
            diagnostic.note("it may be missing after this", previous)
        return SyntaxRefused()

    def span(self, first: Token) -> Span:
        """From `first` to the last consumed token."""
        return Span(first, self.tokens[self.index - 1])

    # ------------------------------------------------------------------------------------- budgets

    def descend(self) -> None:
        """Enter what may nest; `ascend` leaves it."""
        self._nesting += 1
        if self._nesting > NESTING:
            exceeded(self.diagnostics, f"this nests more than {NESTING} deep", self.token)

    def ascend(self, levels: int = 1) -> None:
        """Leave what `descend` entered."""
        self._nesting -= levels

    def lengthen_chain(self) -> None:
        """Count an operator, member or call of the outermost expression."""
        self.chain_length += 1
        if self.chain_length > CHAIN_LENGTH:
            exceeded(
                self.diagnostics,
                f"an expression has more than {CHAIN_LENGTH} operators, members and calls",
                self.token,
            )

    # ------------------------------------------------------------------------------------- names

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope of names."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def declare(self, name: str, what: str) -> None:
        """Note what a name stands for from here on: TYPE or VALUE."""
        self.scopes[-1][name] = what

    def is_type_name(self, name: str) -> bool:
        """Whether a name stands for a type here."""
        for scope in reversed(self.scopes):
            what = scope.get(name)
            if what is not None:
                return what == TYPE
        return False

    # ------------------------------------------------------------------------------------- recovery

    def skip_to(self, *kinds: str) -> None:
        """Skip to one of `kinds` at this nesting depth, without consuming it, or to an unmatched '}'."""
        depth = 0
        while self.kind != "end":
            if depth == 0 and self.kind in kinds:
                return
            if self.kind in ("{", "(", "["):
                depth += 1
            elif self.kind in ("}", ")", "]"):
                if depth == 0 and self.kind == "}":
                    return
                depth = max(0, depth - 1)
            self.advance()

    def recover(self) -> None:
        """After an error: skip past the current statement or declaration."""
        start = self.index
        depth = 0
        while self.kind != "end":
            if self.kind == ";" and depth == 0:
                self.advance()
                return
            if self.kind == "{":
                depth += 1
            elif self.kind == "}":
                if depth == 0:
                    return
                depth -= 1
                if depth == 0:
                    self.advance()
                    return
            self.advance()
        if self.index == start:
            self.advance()


def _is_quoted(expected: str) -> bool:
    """Whether only a certain token is right, so that no name could stand there."""
    return expected.startswith("'") and expected.endswith("'")


def describe_kind(kind: str) -> str:
    """How a message names a token kind."""
    if kind == "id":
        return "a name"
    if kind == "integer":
        return "an integer"
    if kind == "text":
        return "a string"
    if kind in KEYWORDS or not kind.isalpha():
        return f"'{kind}'"
    return kind
