"""Formats values for display: addresses, ports, types, matches, and names of fields."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from weft.switch import bmv2json
from weft.switch.backend import ExactMatch, LpmMatch, Match, RangeMatch, TableKey, TernaryMatch
from weft.switch.bmv2json.model_parsers import TransitionKeyField

_ADDRESS_HINTS = ("addr", "ip", "src", "dst", "source", "destination")
_DECIMAL_BITS = 16
"""Widest decimal numbers; wider ones are in hexadecimal."""


def number(value: int, width_bits: int, name: str = "") -> str:
    """Return a value in the format suggested by its width and its field's name."""
    last = name.rpartition(".")[2].lower()
    if width_bits == 48 and "timestamp" not in last:
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if any(hint in last for hint in _ADDRESS_HINTS):
        if width_bits == 32:
            return str(ipaddress.IPv4Address(value))
        if width_bits == 128:
            return str(ipaddress.IPv6Address(value))
    if "type" in last and width_bits == 16:
        return f"0x{value:04x}"
    is_decimal = width_bits <= _DECIMAL_BITS or value < 10 or "timestamp" in last
    return str(value) if is_decimal else f"0x{value:x}"


def match_text(match: Match, width_bits: int, name: str) -> str:
    """Return one field of an entry's match as text."""
    match match:
        case ExactMatch(value):
            return number(value, width_bits, name)
        case LpmMatch(value, length):
            return f"{number(value, width_bits, name)}/{length}"
        case TernaryMatch(_, 0):
            return "*"
        case TernaryMatch(value, mask):
            return f"{number(value, width_bits, name)} &&& 0x{mask:x}"
        case RangeMatch(low, high):
            return f"{number(low, width_bits, name)}..{number(high, width_bits, name)}"
    raise TypeError(f"unknown match {match!r}")


def key_text(key: TableKey, widths_bits: Sequence[int], names: Sequence[str]) -> str:
    """Return a whole match as text, in the order of the key."""
    return ", ".join(match_text(match, width, name) for match, width, name in zip(key, widths_bits, names, strict=True))


def field_name(name: str) -> str:
    """Return a name without the compiler's prefixes."""
    return name.removeprefix("scalars.").replace("userMetadata.", "meta.")


def expression_text(expression: bmv2json.Argument) -> str:
    """Return an argument of a primitive in P4 syntax."""
    match expression:
        case bmv2json.FieldRef(header, field):
            return f"{header}.isValid()" if field == bmv2json.VALID_FIELD else field_name(f"{header}.{field}")
        case bmv2json.Constant(value):
            return str(value)
        case bmv2json.BoolConstant(value):
            return str(value).lower()
        case bmv2json.RuntimeData(index):
            return f"parameter {index}"
        case (
            bmv2json.HeaderRef(name) | bmv2json.StackRef(name) | bmv2json.UnionRef(name) | bmv2json.UnionStackRef(name)
        ):
            return name
        case (
            bmv2json.RegisterArrayRef(name)
            | bmv2json.CounterArrayRef(name)
            | bmv2json.MeterArrayRef(name)
            | bmv2json.CalculationRef(name)
        ):
            return name
        case bmv2json.StackField(stack, field):
            return f"{stack}.last.{field}"
        case bmv2json.UnionStackField(stack, member, field):
            return f"{stack}.last.{member}.{field}"
        case bmv2json.Lookahead(_, width):
            return f"lookahead<bit<{width}>>"
        case bmv2json.RegisterRef(array, index):
            return f"{array}[{expression_text(index)}]"
        case bmv2json.FieldAccess(header, index):
            return f"{expression_text(header)}.field{index}"
        case bmv2json.UnionMemberAccess(union, index):
            return f"{expression_text(union)}.member{index}"
        case bmv2json.StringLiteral(value):
            return f'"{value}"'
        case bmv2json.ParametersVector(elements):
            return ", ".join(map(expression_text, elements))
        case bmv2json.Operation():
            return _operation_text(expression)
    raise TypeError(f"unknown argument {expression!r}")


def _operation_text(operation: bmv2json.Operation) -> str:
    operands = [expression_text(operand) for operand in operation.operands]
    match operation.operator, operands:
        case (("d2b" | "b2d"), [operand]):
            return operand
        case "valid" | "valid_union", [header]:
            return f"{header}.isValid()"
        case "not", [operand]:
            return f"!{operand}"
        case "dereference_header_stack" | "dereference_union_stack", [stack, index]:
            return f"{stack}[{index}]"
        case "?", [condition, then, otherwise]:
            return f"({condition} ? {then} : {otherwise})"
        case operator, [left, right]:
            sign = {"and": "&&", "or": "||"}.get(operator, operator)
            return f"({left} {sign} {right})"
        case operator, _:
            return f"{operator}({', '.join(operands)})"


def split_key(value: int, fields: Sequence[TransitionKeyField]) -> list[int]:
    """Return the values in a select's key, which has fields padded to whole bytes."""
    values = []
    for item in reversed(fields):
        padded = (item.width_bits + 7) // 8 * 8
        values.append(value & ((1 << padded) - 1))
        value >>= padded
    return values[::-1]
