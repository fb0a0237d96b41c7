"""Nodes in general, and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.compiler.source import Span, Token

if TYPE_CHECKING:
    from weft.compiler.ast.expressions import Expression


@dataclass(slots=True, eq=False)
class Node:
    """Anything with a place in the source."""

    span: Span


@dataclass(slots=True, eq=False)
class AnnotationElement(Node):
    """One value, maybe with its key, of a structured annotation."""

    name: str | None
    expression: Expression


@dataclass(slots=True, eq=False)
class Annotation(Node):
    """`@name(…)`: `tokens` is the body unparsed; or `@name[…]`: `elements` are its values."""

    name: str
    tokens: list[Token]
    elements: list[AnnotationElement] | None = None

    def strings(self) -> list[str]:
        """The string literals of the body, unquoted."""
        return [unquote(token.text) for token in self.tokens if token.kind == "text"]

    def integers(self) -> list[int]:
        """The integer literals of the body."""
        return [parse_integer(token.text)[0] for token in self.tokens if token.kind == "integer"]


Annotations = list[Annotation]


def unquote(text: str) -> str:
    """The characters of a string literal."""
    return text[1:-1].replace('\\"', '"').replace("\\\\", "\\").replace("\\n", "\n")


def parse_integer(text: str) -> tuple[int, int | None, bool]:
    """Value, width (None: arbitrary precision) and signedness of an integer literal. Raises ValueError."""
    width: int | None = None
    signed = False
    digits = text
    for marker in "ws":
        head, found, tail = text.partition(marker)
        if found and head.isdigit():
            width, signed, digits = int(head), marker == "s", tail
            break
    digits = digits.replace("_", "").lower()
    prefixes = {"0x": 16, "0b": 2, "0o": 8, "0d": 10}
    base = prefixes.get(digits[:2], 10)
    return int(digits[2:] if digits[:2] in prefixes else digits, base), width, signed
