"""Value ranges of expressions.

BMv2 computes with integers of unlimited precision and truncates values only when they are stored. The range of a
subexpression gives the bits that its exact value needs, so that native arithmetic of that width agrees.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.switch import bmv2json
from weft.switch.lowering.errors import UnsupportedError

MAX_EXACT_BITS = 4096
"""Widest intermediate value that native code computes exactly."""


@dataclass(frozen=True, slots=True)
class Range:
    """All integers from `low` to `high`."""

    low: int
    high: int

    @property
    def signed(self) -> bool:
        """True if negative values are possible."""
        return self.low < 0

    @property
    def bits(self) -> int:
        """Width of an integer (two's complement if signed) that holds every value."""
        if not self.signed:
            return max(1, self.high.bit_length())
        return max(self.high.bit_length(), (~self.low).bit_length()) + 1

    def union(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def unsigned(width_bits: int) -> Range:
    """All values of bit<width_bits>."""
    return Range(0, (1 << width_bits) - 1)


def signed(width_bits: int) -> Range:
    """All values of int<width_bits>."""
    return Range(-(1 << (width_bits - 1)), (1 << (width_bits - 1)) - 1)


class RangeAnalysis:
    """Ranges of the expressions of one program, remembered per expression object."""

    def __init__(self, program: bmv2json.Program) -> None:
        self._program = program
        self._known: dict[int, Range] = {}

    def of(self, expression: bmv2json.Expression) -> Range:
        """The range of an expression of kind DATA. UnsupportedError if it needs more than MAX_EXACT_BITS."""
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = self._compute(expression)
            if known.bits > MAX_EXACT_BITS:
                raise UnsupportedError(f"an expression needs {known.bits} bits (at most {MAX_EXACT_BITS})")
        return known

    def _compute(self, expression: bmv2json.Expression) -> Range:
        match expression:
            case bmv2json.Constant(value):
                return Range(value, value)
            case bmv2json.FieldRef(width_bits=width, signed=True):
                return signed(width)
            case bmv2json.FieldAccess(header, index, width):
                is_signed = bmv2json.header_type_of(self._program, header).fields[index].signed
                return signed(width) if is_signed else unsigned(width)
            case (
                bmv2json.FieldRef(width_bits=width)
                | bmv2json.RuntimeData(width_bits=width)
                | bmv2json.StackField(width_bits=width)
                | bmv2json.UnionStackField(width_bits=width)
                | bmv2json.Lookahead(width_bits=width)
                | bmv2json.RegisterRef(width_bits=width)
            ):
                return unsigned(width)
            case bmv2json.Operation(operator, operands):
                return self._operation(operator, operands)
        raise TypeError(f"not an integer expression: {expression}")

    def _operation(self, operator: str, operands: tuple[bmv2json.Expression, ...]) -> Range:
        match operator:
            case "b2d":
                return Range(0, 1)
            case "?":
                return self.of(operands[1]).union(self.of(operands[2]))
            case "last_stack_index":
                return Range(-1, self._stack_size(operands[0]) - 1)
            case "size_stack":
                return Range(0, self._stack_size(operands[0]))
            case "two_comp_mod" | "sat_cast":
                return signed(constant_width(operator, operands[1]))
            case "usat_cast":
                return unsigned(constant_width(operator, operands[1]))
        ranges = [self.of(operand) for operand in operands]
        if len(ranges) == 1:
            return _unary(operator, ranges[0])
        return _binary(operator, ranges[0], ranges[1])

    def _stack_size(self, stack: bmv2json.Expression) -> int:
        match stack:
            case bmv2json.StackRef(name):
                return len(self._program.header_stacks[name].headers)
            case bmv2json.UnionStackRef(name):
                return len(self._program.header_union_stacks[name].unions)
        raise UnsupportedError("a header stack that is chosen at run time")


def constant_width(operator: str, width: bmv2json.Expression) -> int:
    """The constant second operand of a cast."""
    if not isinstance(width, bmv2json.Constant) or not 0 < width.value <= MAX_EXACT_BITS:
        raise UnsupportedError(f"'{operator}' needs a constant width from 1 to {MAX_EXACT_BITS}")
    return width.value


def _unary(operator: str, value: Range) -> Range:
    match operator:
        case "~":
            return Range(~value.high, ~value.low)
        case "-":
            return Range(-value.high, -value.low)
        case "+":
            return value
    raise UnsupportedError(f"operator '{operator}'")


def _binary(operator: str, left: Range, right: Range) -> Range:
    match operator:
        case "+":
            return Range(left.low + right.low, left.high + right.high)
        case "-":
            return Range(left.low - right.high, left.high - right.low)
        case "*":
            products = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            return Range(min(products), max(products))
        case "/":
            largest = max(abs(left.low), abs(left.high))
            return Range(-largest if left.signed or right.signed else 0, largest)
        case "%":
            largest = min(max(abs(left.low), abs(left.high)), max(abs(right.low), abs(right.high)))
            return Range(-largest if left.signed or right.signed else 0, largest)
        case "&" | "|" | "^":
            return _bitwise(operator, left, right)
        case "<<":
            return _shift_left(left, right)
        case ">>":
            least = max(right.low, 0)
            return Range(min(left.low, left.low >> least), max(left.high >> least, 0 if left.high >= 0 else -1))
    raise UnsupportedError(f"operator '{operator}'")


def _bitwise(operator: str, left: Range, right: Range) -> Range:
    if operator == "&":
        limits = [side.high for side in (left, right) if not side.signed]
        if limits:
            return Range(0, min(limits))
    if not left.signed and not right.signed:
        return unsigned(max(left.bits, right.bits))
    return signed(max(left.union(right).bits, left.bits + (not left.signed), right.bits + (not right.signed)))


def _shift_left(left: Range, right: Range) -> Range:
    # Compilers mask a shifted value immediately, which needs only its low bits. If the exact value is used,
    # bits beyond MAX_EXACT_BITS are lost.
    amount = min(max(right.high, 0), MAX_EXACT_BITS - max(left.bits, 1) - 1)
    if amount < 0:
        raise UnsupportedError(f"a shifted value of {left.bits} bits (at most {MAX_EXACT_BITS})")
    return Range(min(left.low, left.low << amount), max(left.high, left.high << amount))
