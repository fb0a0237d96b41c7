"""Reads fields of the endpoint's JSON messages by name and type, with errors that say what was wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")

Message = Mapping[str, Any]

AS_BYTES, AS_LENGTHS = PAYLOADS = ("bytes", "lengths")
"""How the zeros that stand for data are sent: as bytes, or only as a length (virtual clock)."""


class MessageError(ValueError):
    """A message lacks a field, or a field has the wrong type."""


def take(message: Message, name: str, kind: type[T], default: T | None = None) -> T:
    """Return field `name`, which must be of type `kind`; `default` stands for a field that is missing.

    Raises MessageError naming the field, its value and the type. An int is taken where a float is wanted.
    """
    value = message.get(name, default)
    if value is None:
        raise MessageError(f"field {name!r} is missing (given: {', '.join(sorted(message)) or 'none'})")
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise MessageError(f"field {name!r} is {value!r} (valid: {kind.__name__})")
    return value


def take_optional(message: Message, name: str, kind: type[T]) -> T | None:
    """Like take(), but None for a field that is missing or null."""
    return None if message.get(name) is None else take(message, name, kind)


def take_list(message: Message, name: str, kind: type[T]) -> list[T]:
    """Return a list field whose items are all of type `kind`."""
    values = take(message, name, list)
    if all(type(value) is kind for value in values):
        return list(values)
    return [take({f"{name}[{index}]": value}, f"{name}[{index}]", kind) for index, value in enumerate(values)]
