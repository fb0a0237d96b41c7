"""Evaluates expressions: integers of unlimited precision, booleans, headers, stacks and unions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from weft.switch import bmv2json
from weft.switch.oracle.state import HeaderState, PacketState, StackState, UnionStackState, UnionState

MAX_SHIFT_BITS = 16384
"""A longer shift moves every bit out of any field."""


class RegisterReader(Protocol):
    """The parts of the switch that expressions use."""

    def register_cell(self, array: str, index: int) -> int:
        """The cell; 0 for an index out of range."""


@dataclass(slots=True)
class Environment:
    """The context in which an expression is evaluated."""

    packet: PacketState
    registers: RegisterReader
    arguments: Sequence[int] = ()
    lookahead: Callable[[int, int], int] | None = field(default=None)


def integer(expression: bmv2json.Expression, env: Environment) -> int:
    """The value of an integer expression."""
    value = evaluate(expression, env)
    assert isinstance(value, int)
    return value


def boolean(expression: bmv2json.Expression, env: Environment) -> bool:
    """The value of a boolean expression."""
    value = evaluate(expression, env)
    assert isinstance(value, bool)
    return value


def header(expression: bmv2json.Expression, env: Environment) -> HeaderState:
    """The header that a header expression designates."""
    value = evaluate(expression, env)
    assert isinstance(value, HeaderState)
    return value


def evaluate(expression: bmv2json.Expression, env: Environment) -> Any:
    """The value: int, bool, HeaderState, StackState, UnionState or UnionStackState."""
    packet = env.packet
    match expression:
        case bmv2json.FieldRef():
            return packet.get(expression)
        case bmv2json.Constant(value) | bmv2json.BoolConstant(value):
            return value
        case bmv2json.RuntimeData(index):
            return env.arguments[index]
        case bmv2json.HeaderRef(name):
            return packet.headers[name]
        case bmv2json.StackRef(name):
            return packet.stacks[name]
        case bmv2json.UnionRef(name):
            return packet.unions[name]
        case bmv2json.UnionStackRef(name):
            return packet.union_stacks[name]
        case bmv2json.StackField(stack, name):
            return packet.stacks[stack].last().get(name)
        case bmv2json.UnionStackField():
            return _union_stack_field(expression, packet)
        case bmv2json.Lookahead(offset_bits, width_bits):
            assert env.lookahead is not None
            return env.lookahead(offset_bits, width_bits)
        case bmv2json.RegisterRef(array, index):
            return env.registers.register_cell(array, integer(index, env))
        case bmv2json.FieldAccess(target, index):
            found = header(target, env)
            return found.get(found.type.fields[index].name)
        case bmv2json.UnionMemberAccess(union, index):
            return evaluate(union, env).members[index]
        case bmv2json.Operation():
            return _operation(expression, env)
    raise TypeError(f"unknown expression {expression!r}")


def _union_stack_field(expression: bmv2json.UnionStackField, packet: PacketState) -> int:
    last = packet.union_stacks[expression.stack].last()
    stack = packet.program.header_union_stacks[expression.stack]
    return last.members[stack.type.member_index(expression.member)].get(expression.field)


def _operation(expression: bmv2json.Operation, env: Environment) -> Any:
    operator, operands = expression.operator, expression.operands
    match operator:
        case "and":
            return boolean(operands[0], env) and boolean(operands[1], env)
        case "or":
            return boolean(operands[0], env) or boolean(operands[1], env)
        case "?":
            return evaluate(operands[1] if boolean(operands[0], env) else operands[2], env)
        case "dereference_header_stack" | "dereference_union_stack":
            return evaluate(operands[0], env).at(integer(operands[1], env))
    values = [evaluate(operand, env) for operand in operands]
    if len(values) == 1:
        return UNARY[operator](values[0])
    return BINARY[operator](*values)


def _equal(left: Any, right: Any) -> bool:
    """Equality.

    Headers are equal if both are invalid or both valid with equal fields, stacks element by element.
    """
    if isinstance(left, HeaderState):
        if left.valid != right.valid:
            return False
        return not left.valid or left.to_bits() == right.to_bits()
    if isinstance(left, UnionState):
        return all(_equal(*pair) for pair in zip(left.members, right.members, strict=True))
    if isinstance(left, StackState | UnionStackState):
        return len(left.elements) == len(right.elements) and all(
            _equal(*pair) for pair in zip(left.elements, right.elements, strict=True)
        )
    return bool(left == right)


def _shift_left(value: int, amount: int) -> int:
    return value << amount if 0 <= amount <= MAX_SHIFT_BITS else 0


def _shift_right(value: int, amount: int) -> int:
    return value >> min(amount, MAX_SHIFT_BITS) if amount >= 0 else 0


def _divide(left: int, right: int) -> int:
    # the quotient is truncated towards zero; division by zero gives zero
    if right == 0:
        return 0
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _signed(value: int, width_bits: int) -> int:
    value &= (1 << width_bits) - 1
    return value - (1 << width_bits) if width_bits and value >> (width_bits - 1) else value


def _clamp_signed(value: int, width_bits: int) -> int:
    half = 1 << (width_bits - 1)
    return max(-half, min(half - 1, value))


UNARY: dict[str, Callable[[Any], Any]] = {
    "~": lambda value: ~value,
    "+": lambda value: value,
    "-": lambda value: -value,
    "not": lambda value: not value,
    "d2b": lambda value: value != 0,
    "b2d": int,
    "valid": lambda found: found.valid,
    "valid_union": lambda union: union.valid,
    "last_stack_index": lambda stack: stack.next - 1,
    "size_stack": lambda stack: stack.next,
}

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divide,
    "%": lambda left, right: left - right * _divide(left, right) if right else 0,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "<<": _shift_left,
    ">>": _shift_right,
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "two_comp_mod": _signed,
    "usat_cast": lambda value, width_bits: max(0, min((1 << width_bits) - 1, value)),
    "sat_cast": _clamp_signed,
}
