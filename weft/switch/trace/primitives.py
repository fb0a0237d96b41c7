"""Describes a primitive's effect in a line."""

from __future__ import annotations

from pathlib import PurePath
from typing import cast

from weft.switch.bmv2json import (
    CalculationRef,
    CounterArrayRef,
    FieldRef,
    MeterArrayRef,
    RegisterArrayRef,
    StringLiteral,
)
from weft.switch.trace.places import PrimitiveRun
from weft.switch.trace.values import expression_text, number

_COLOURS = ("green", "yellow", "red")


def primitive_text(place: PrimitiveRun, values: tuple[int, ...]) -> str:
    """Return the primitive with its values, and its place in the program."""
    source = short_source(place)
    return _text(place, values) + (f"   ← {source}" if source else "")


def short_source(place: PrimitiveRun) -> str:
    """Return file (without folders), line and text of the call in the P4 program; "" if the compiler omitted them."""
    file, colon, rest = (place.call.source or "").partition(":")
    return f"{PurePath(file).name}{colon}{rest}"


def log_message(text: str, values: tuple[int, ...]) -> str:
    """Return the message of log_msg; placeholders without a value are kept."""
    pieces = text.split("{}")
    message = pieces[0]
    for index, piece in enumerate(pieces[1:]):
        message += (str(values[index]) if index < len(values) else "{}") + piece
    return message


def drops_packet(place: PrimitiveRun) -> bool:
    """Return whether a primitive may set egress_spec to the drop port."""
    if place.call.name in ("drop", "mark_to_drop"):
        return True
    return isinstance(place.result, FieldRef) and place.result.field == "egress_spec"


def _text(place: PrimitiveRun, values: tuple[int, ...]) -> str:
    call, arguments = place.call, place.call.arguments
    written = ""
    if place.result is not None:
        name = expression_text(place.result)
        written = f"{name} = {number(values[-1], place.result_bits, name)}"
    match call.name:
        case "register_read":
            return f"{written}, read from {cast(RegisterArrayRef, arguments[1]).name}[{values[0]}]"
        case "register_write":
            name = cast(RegisterArrayRef, arguments[0]).name
            return f"{name}[{values[0]}] = {number(values[1], place.operands[1][1])}"
        case "count":
            return f"count {cast(CounterArrayRef, arguments[0]).name}[{values[0]}]"
        case "execute_meter":
            colour = _COLOURS[values[-1]] if values[-1] < len(_COLOURS) else "?"
            return f"{written} ({colour}), meter {cast(MeterArrayRef, arguments[0]).name}[{values[0]}]"
        case "modify_field_with_hash_based_offset":
            return f"{written}, hash {cast(CalculationRef, arguments[2]).name}"
        case "modify_field_rng_uniform":
            return f"{written}, random"
        case "_jump_if_zero":
            return f"if {expression_text(arguments[0])}: {'true' if values[0] else 'false'}"
        case "assert" | "assume":
            return f"{call.name} {expression_text(arguments[0])}: {'holds' if values[0] else 'fails'}"
        case "log_msg":
            return f"log: {log_message(cast(StringLiteral, arguments[0]).value, values)}"
        case "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress":
            return f"clone to session {values[0]}, field list {values[1]}"
        case "resubmit" | "recirculate":
            return f"{call.name}, field list {values[-1]}"
        case "generate_digest":
            return f"digest, learn list {values[-1]}"
        case "truncate":
            return f"truncate to {values[0]} bytes"
        case "push" | "pop":
            return f"{expression_text(arguments[0])}.{call.name}_front({values[0]})"
        case "add_header":
            return f"{expression_text(arguments[0])}.setValid()"
        case "remove_header":
            return f"{expression_text(arguments[0])}.setInvalid()"
        case "drop" | "mark_to_drop" | "exit" | "no_op":
            return call.name
    if place.result is not None:
        return written
    return f"{expression_text(arguments[0])} = {expression_text(arguments[1])}"
