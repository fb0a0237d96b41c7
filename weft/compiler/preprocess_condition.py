"""The expression of #if and #elif."""

from __future__ import annotations

from collections.abc import Callable

from weft.compiler.budgets import NESTING, WIDTH_BITS, exceeded
from weft.compiler.diagnostics import Diagnostics
from weft.compiler.macros import MacroExpander
from weft.compiler.source import Token

_PRECEDENCE: list[dict[str, Callable[[int, int], int]]] = [
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": lambda a, b: a | b},
    {"^": lambda a, b: a ^ b},
    {"&": lambda a, b: a & b},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"+": lambda a, b: a + b, "-": lambda a, b: a - b},
    {"*": lambda a, b: a * b, "/": lambda a, b: a // b if b else 0, "%": lambda a, b: a % b if b else 0},
]


class _Malformed(Exception):
    pass


class _TooMuch(Exception):
    """A budget is spent; the message says which."""


class _Evaluator:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.index = 0
        self.nesting = 0

    def peek(self) -> str:
        return self.tokens[self.index].text if self.index < len(self.tokens) else ""

    def nested(self, parse: Callable[[], int]) -> int:
        """Call `parse` one level further in, and return its value."""
        self.nesting += 1
        if self.nesting > NESTING:
            raise _TooMuch(f"this condition nests more than {NESTING} deep")
        value = parse()
        self.nesting -= 1
        return value

    def ternary(self) -> int:
        condition = self.level(0)
        if self.peek() != "?":
            return condition
        self.index += 1
        first = self.nested(self.ternary)
        if self.peek() != ":":
            raise _Malformed
        self.index += 1
        second = self.nested(self.ternary)
        return first if condition else second

    def level(self, depth: int) -> int:
        if depth == len(_PRECEDENCE):
            return self.unary()
        value = self.level(depth + 1)
        while self.peek() in _PRECEDENCE[depth]:
            operator = _PRECEDENCE[depth][self.peek()]
            self.index += 1
            value = operator(value, self.level(depth + 1))
            if value.bit_length() > WIDTH_BITS:
                raise _TooMuch(f"a number in this condition has more than {WIDTH_BITS} bits")
        return value

    def unary(self) -> int:
        word = self.peek()
        if word in ("!", "-", "+", "~"):
            self.index += 1
            value = self.nested(self.unary)
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[word]
        if word == "(":
            self.index += 1
            value = self.nested(self.ternary)
            if self.peek() != ")":
                raise _Malformed
            self.index += 1
            return value
        if self.index >= len(self.tokens):
            raise _Malformed
        token = self.tokens[self.index]
        self.index += 1
        if token.kind == "integer":
            return int(token.text.replace("_", "").lower(), 0 if not token.text.isdigit() else 10)
        if token.kind == "true":
            return 1
        if token.text[0].isalpha() or token.text[0] == "_":
            return 0
        raise _Malformed


def evaluate_condition(body: list[Token], directive: Token, expander: MacroExpander, diagnostics: Diagnostics) -> bool:
    """Whether the condition holds; unknown names count as 0, as in C."""
    resolved: list[Token] = []
    index = 0
    while index < len(body):
        token = body[index]
        if token.text == "defined":
            parenthesised = index + 1 < len(body) and body[index + 1].kind == "("
            at = index + (2 if parenthesised else 1)
            if at >= len(body):
                diagnostics.error("'defined' needs a macro's name", token)
                return False
            known = "1" if body[at].text in expander.macros else "0"
            resolved.append(Token("integer", known, token.source, token.offset, hidden=frozenset(["defined"])))
            index = at + (2 if parenthesised else 1)
            continue
        resolved.append(token)
        index += 1
    evaluator = _Evaluator(expander.expand(resolved))
    try:
        value = evaluator.ternary()
        if evaluator.index != len(evaluator.tokens):
            raise _Malformed
    except _TooMuch as error:
        exceeded(diagnostics, str(error), directive)
    except (_Malformed, ValueError):
        diagnostics.error("this is not a condition the preprocessor can evaluate", directive)
        return False
    return bool(value)
