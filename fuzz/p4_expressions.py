"""Random P4 expressions, conditions and assignments that are well-typed."""

from __future__ import annotations

import random

WIDTHS = (1, 3, 4, 7, 8, 9, 12, 16, 24, 31, 32, 33, 48, 63, 64, 65, 100, 128)
DEPTH = 3
"""Of the operators in an expression."""


class Expressions:
    """What can be written with what is in scope: names, each with its width and whether it is signed."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.fields: list[tuple[str, int, bool]] = []
        """Can be assigned to."""
        self.inputs: list[tuple[str, int, bool]] = []
        """Can only be read."""
        self.variables: list[tuple[str, int, bool]] = []
        self.functions: list[tuple[str, int, int]] = []
        """Name, width of the result, width of the argument."""
        self.conditions: list[str] = []
        """Whole conditions, such as the validity of headers."""

    def assignment(self) -> str:
        """An assignment to a field, or to some of its bits."""
        name, width, signed = self.rng.choice(self.fields)
        if not signed and width > 1 and self.rng.random() < 0.2:
            high, low = sorted((self.rng.randrange(width) for _ in range(2)), reverse=True)
            return f"{name}[{high}:{low}] = {self.expression(high - low + 1, False, DEPTH)}; "
        return f"{name} = {self.expression(width, signed, DEPTH)}; "

    def condition(self, depth: int) -> str:
        """A Boolean expression."""
        choice = self.rng.randrange(6) if depth else 0
        if choice == 1:
            return self.rng.choice(self.conditions or ["true"])
        if choice == 2:
            return f"!({self.condition(depth - 1)})"
        if choice == 3:
            return f"({self.condition(depth - 1)}) {self.rng.choice(('&&', '||'))} ({self.condition(depth - 1)})"
        width, signed = self.rng.choice(WIDTHS[1:]), self.rng.random() < 0.3
        left, right = (self.expression(width, signed, max(depth - 1, 0)) for _ in range(2))
        return f"{left} {self.rng.choice(('==', '!=', '<', '<=', '>', '>='))} {right}"

    def expression(self, width: int, signed: bool, depth: int) -> str:
        """An expression of the type bit<width> or int<width>."""
        if depth == 0:
            return self._leaf(width, signed)
        choice = self.rng.randrange(12)
        inner = [self.expression(width, signed, depth - 1) for _ in range(2)]
        if choice <= 4:
            operator = self.rng.choice(("+", "-", "*", "&", "|", "^", "|+|", "|-|"))
            return f"({inner[0]} {operator} {inner[1]})"
        if choice == 5:
            amount = self.rng.choice((f"8w{self.rng.randrange(140)}", f"({self.expression(8, False, 0)})"))
            return f"({inner[0]} {self.rng.choice(('<<', '>>'))} {amount})"
        if choice == 6:
            return f"({self.rng.choice(('~', '-'))}{inner[0]})"
        if choice == 7:
            return f"({self.condition(depth - 1)} ? {inner[0]} : {inner[1]})"
        if choice == 8:
            return f"(({typed(width, signed)})({typed(width, not signed)}){self.expression(width, signed, depth - 1)})"
        if choice == 9 and width > 1:
            left = self.rng.randrange(1, width)
            joined = f"({self.expression(left, False, depth - 1)} ++ {self.expression(width - left, False, depth - 1)})"
            return f"((int<{width}>){joined})" if signed else joined
        if choice == 10 and not signed:
            wide = width + self.rng.randrange(20)
            low = self.rng.randrange(wide - width + 1)
            return f"({self.expression(wide, False, depth - 1)})[{low + width - 1}:{low}]"
        functions = [each for each in self.functions if each[1] == width]
        if functions and not signed:
            name, _, argument = self.rng.choice(functions)
            return f"{name}({self.expression(argument, False, depth - 1)})"
        return self._leaf(width, signed)

    def _leaf(self, width: int, signed: bool) -> str:
        sources = self.fields + self.inputs + self.variables
        if sources and self.rng.random() < 0.7:
            name, other_width, other_signed = self.rng.choice(sources)
            if (other_width, other_signed) == (width, signed):
                return name
            if other_signed == signed:
                return f"(({typed(width, signed)}){name})"
            return f"(({typed(width, signed)})({typed(other_width, signed)}){name})"
        number = self.rng.choice((self.rng.getrandbits(width), 0, 1, (1 << width) - 1)) & ((1 << width) - 1)
        if signed:
            return f"{width}s{number >> 1}"
        return f"{width}w{number}"


def typed(width: int, signed: bool) -> str:
    """The name of a type."""
    return f"{'int' if signed else 'bit'}<{width}>"
