"""simple_switch's log wording for primitives, copies, and fields that a parser sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.switch import bmv2json
from weft.switch.trace.events import CopyTrace, Enqueued
from weft.switch.trace.places import PrimitiveRun
from weft.switch.trace.primitives import log_message
from weft.switch.trace.values import expression_text

TRACE, DEBUG, INFO, ERROR = "T", "D", "I", "E"
_AGAIN: Final = {4: "Recirculating packet", 6: "Resubmitting packet"}

Said = tuple[str, str]
"""A level and a text of one or more lines."""


def primitive(program: bmv2json.Program, place: PrimitiveRun, values: tuple[int, ...]) -> Iterator[Said]:
    """Yield a primitive, and the objects besides fields that it used or wrote."""
    call = place.call
    text = text_of(call.source) or f"{call.name}({', '.join(map(expression_text, call.arguments))})"
    yield TRACE, f"{place_of(call.source)}Primitive {text}"
    match call.name, call.arguments:
        case "log_msg", (bmv2json.StringLiteral(message), *_):
            yield INFO, log_message(message, values)
        case "register_read", (_, bmv2json.RegisterArrayRef(name), *_):
            used = f"Read register '{name}' at index {values[0]} read value {values[-1]}"
            yield _used(used, "read register", name, values[0], program.register_arrays[name].size)
        case "register_write", (bmv2json.RegisterArrayRef(name), *_):
            used = f"Wrote register '{name}' at index {values[0]} with value {values[1]}"
            yield _used(used, "write register", name, values[0], program.register_arrays[name].size)
        case "count", (bmv2json.CounterArrayRef(name), *_):
            used = f"Updated counter '{name}' at index {values[0]}"
            yield _used(used, "update counter", name, values[0], program.counter_arrays[name].size)
        case "execute_meter", (bmv2json.MeterArrayRef(name), *_):
            used = f"Updated meter '{name}' at index {values[0]}, assigning dest field the color result {values[-1]}"
            yield _used(used, "update meter", name, values[0], program.meter_arrays[name].size)


def _used(text: str, attempt: str, name: str, index: int, size: int) -> Said:
    if index < size:
        return TRACE, text
    return ERROR, f"Attempted to {attempt} '{name}' with size {size} at out-of-bounds index {index}."


def copying(instance_type: int, copy: CopyTrace) -> Iterator[Said]:
    """Yield the texts for a packet that is copied, or continues as a new one."""
    port = next((event.port for event in copy.events if isinstance(event, Enqueued)), None)
    match instance_type:
        case 1 | 2:
            yield DEBUG, f"Cloning packet at {'ingress' if instance_type == 1 else 'egress'}"
            if port is not None:  # else it is for several, which replicas of it go to
                yield DEBUG, f"Cloning packet to egress port {port}"
        case 5:
            yield DEBUG, "Replicating packet" if port is None else f"Replicating packet on port {port}"
        case _:
            yield DEBUG, _AGAIN.get(instance_type, f"Copying packet, instance type {instance_type}")


def set_to(source: bmv2json.Expression, value: int) -> str:
    """Return how a parser has set a field to a value, in words."""
    match source:
        case bmv2json.Constant():
            return f"to {value}"
        case bmv2json.FieldRef():
            return f"from field '{source}' ({value})"
        case bmv2json.Lookahead(offset_bits, width_bits):
            return f"from lookahead ({offset_bits}, {width_bits}), new value is {value}"
        case _:
            return f"from expression, new value is {value}"


def place_of(source: str | None) -> str:
    """Return `file(line) ` for a place in the program; "" if unknown."""
    place, _, _ = (source or "").partition(": ")
    file, _, line = place.rpartition(":")
    return f"{file.rpartition('/')[2]}({line}) " if file else ""


def text_of(source: str | None) -> str:
    """Return the program's text at a place; "" if unknown."""
    return (source or "").partition(": ")[2]
