"""Mutations of any protobuf message."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (32, True),
    FieldDescriptor.CPPTYPE_INT64: (64, True),
    FieldDescriptor.CPPTYPE_UINT32: (32, False),
    FieldDescriptor.CPPTYPE_UINT64: (64, False),
}
_BYTES = (b"", b"\0", b"\1", b"\0\1", b"\xff", b"\xff\xff", b"\x01\0", b"\xff" * 17, b"x" * 5000)
_DEPTH = 4


def mutate_message(rng: random.Random, message: Message) -> None:
    """Clear, change, repeat, reorder or add a field somewhere in the message."""
    sites = _sites(message)
    if not sites or rng.random() < 0.15:
        holder = rng.choice([message, *(value for value in _messages(message))])
        _add_field(rng, holder, _DEPTH)
        return
    holder, field = rng.choice(sites)
    match rng.randrange(5):
        case 0:
            holder.ClearField(field.name)
        case 1 | 2 if field.is_repeated:
            values = getattr(holder, field.name)
            if field.message_type is not None:
                values.append(rng.choice(values))
            else:
                values.append(scalar(rng, field))
        case 3 if field.is_repeated:
            del getattr(holder, field.name)[rng.randrange(len(getattr(holder, field.name)))]
        case _ if field.message_type is None and not field.is_repeated:
            setattr(holder, field.name, _near(rng, field, getattr(holder, field.name)))
        case _:
            _add_field(rng, holder, _DEPTH)


def scalar(rng: random.Random, field: FieldDescriptor) -> Any:
    """A value for a field that is no message."""
    if field.cpp_type in _BITS:
        bits, signed = _BITS[field.cpp_type]
        low = -(1 << bits - 1) if signed else 0
        return rng.choice((0, 1, 2, 3, 8, low, low + (1 << bits) - 1, low + rng.getrandbits(bits)))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if field.enum_type is not None:
        return rng.choice([value.number for value in field.enum_type.values] + [99])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((*_BYTES, rng.randbytes(rng.randrange(6))))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(("", "x", "é" * 100, "role"))
    return rng.choice((0.0, -1.0, 1e300))


def _near(rng: random.Random, field: FieldDescriptor, value: Any) -> Any:
    if field.cpp_type in _BITS and rng.random() < 0.6:
        bits, signed = _BITS[field.cpp_type]
        low = -(1 << bits - 1) if signed else 0
        return min(max(value + rng.choice((1, -1, 8)), low), low + (1 << bits) - 1)
    if field.type == FieldDescriptor.TYPE_BYTES and rng.random() < 0.6:
        return rng.choice((b"\0" + value, value[1:], value[:-1], value + b"\1"))
    return scalar(rng, field)


def _sites(message: Message) -> list[tuple[Any, FieldDescriptor]]:
    found: list[tuple[Any, FieldDescriptor]] = []
    for each in [message, *_messages(message)]:
        found += [(each, field) for field, _ in each.ListFields() if not _is_map(field)]
    return found


def _messages(message: Message) -> list[Any]:
    found: list[Any] = []
    for field, value in message.ListFields():
        if field.message_type is None or _is_map(field):
            continue
        for child in value if field.is_repeated else [value]:
            found += [child, *_messages(child)]
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _add_field(rng: random.Random, message: Any, depth: int) -> None:
    fields = [field for field in message.DESCRIPTOR.fields if not _is_map(field)]
    if not fields:
        return
    field = rng.choice(fields)
    if field.message_type is None:
        if field.is_repeated:
            getattr(message, field.name).append(scalar(rng, field))
        else:
            setattr(message, field.name, scalar(rng, field))
        return
    child = getattr(message, field.name)
    if field.is_repeated:
        child = child.add()
    else:
        child.SetInParent()
    for _ in range(rng.randrange(4) if depth else 0):
        _add_field(rng, child, depth - 1)
