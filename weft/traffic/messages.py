"""The serialised form of what a runner and its endpoint processes exchange: frozen dataclasses, as JSON has them.

A class is the one description of a message: its fields are the message's, their annotations say what is valid, and
fields with a default may be missing. A dataclass is an object in JSON, a NamedTuple a list in the order of its fields,
an enumeration its value, or the name in lower case where that is a number. Endpoints read with this, because pydantic
takes longer to import than all else that a host needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, IntEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from weft.errors import InvalidValueError, Refusal

Payload = Literal["bytes", "lengths"]
"""How the zeros that stand for data are sent: as bytes, or only as a length (virtual clock)."""
AS_BYTES: Literal["bytes"] = "bytes"
AS_LENGTHS: Literal["lengths"] = "lengths"

Message = Mapping[str, object]
"""An object of JSON."""

IN_PROCESS: Mapping[str, bool] = {"in process": True}
"""Metadata of a field that no message has: only a caller in the same process can set it."""

_T = TypeVar("_T")
_Reader = Callable[[object, str], Any]
_LONGEST_VALUE = 100
_SCALARS: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


class MessageError(Refusal, ValueError):
    """A message lacks a field, has one that it should not have, or a field's value is not valid."""


@dataclass(frozen=True)
class Between:
    """Annotates a number's range, both ends included."""

    least: float
    most: float = math.inf

    def __call__(self, value: float) -> float:
        """Return the value. Raises ValueError if it lies outside, or is no number."""
        if not self.least <= value <= self.most:
            most = "or more" if self.most == math.inf else f"to {self.most}"
            raise InvalidValueError(f"is {_shown(value)}", valid=f"{self.least} {most}")
        return value


@dataclass(frozen=True)
class OneOf:
    """Annotates a text that is one of these."""

    choices: tuple[str, ...]

    def __call__(self, value: str) -> str:
        """Return the value. Raises ValueError for any other."""
        if value not in self.choices:
            raise InvalidValueError(f"is {_shown(value)}", valid=self.choices)
        return value


def read_message(kind: type[_T], message: object, place: str = "") -> _T:
    """Return the instance of a dataclass that a message stands for.

    Raises:
        MessageError: a field is missing, unknown, or not valid; names the field, its value and what would be valid.
    """
    read: _Reader = _reader(cast(Any, kind))
    return cast(_T, read(message, place))


def as_message(value: object) -> Any:
    """Return a dataclass, or a part of one, in JSON's types: what `read_message` reads."""
    if isinstance(value, Enum):
        return value.name.lower() if isinstance(value, IntEnum) else value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        _require_sendable(value)
        return {name: as_message(getattr(value, name)) for name in _sent_fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): as_message(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [as_message(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _require_sendable(value: Any) -> None:
    for each in fields(value):
        if "in process" in each.metadata and getattr(value, each.name) is not None:
            raise TypeError(f"{type(value).__name__}.{each.name} is for hosts in the same process")


@cache
def _sent_fields(kind: type) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(kind) if "in process" not in each.metadata}


@cache
def _reader(kind: Any) -> _Reader:
    """Return what reads a value of a type, given the value and its place in the message."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return lambda value, _place: value
    if origin is Annotated:
        # Other annotations, such as a key's example in the scenario reference, check nothing.
        return partial(_checked, _reader(arguments[0]), tuple(filter(callable, arguments[1:])))
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        return partial(_optional, _reader(inner))
    if origin is Literal:
        return partial(_chosen, {each: each for each in arguments})
    if origin is tuple:
        return partial(_listed, _reader(arguments[0]))
    if origin in (Mapping, dict):
        return partial(_mapped, arguments[0], _reader(arguments[1]))
    if isinstance(kind, type):
        return _reader_of_class(kind)
    raise TypeError(f"{kind!r} has no form in JSON")


def _reader_of_class(kind: type) -> _Reader:
    if kind in _SCALARS:
        return partial(_scalar, kind)
    if issubclass(kind, Enum):
        return partial(_chosen, {as_message(each): each for each in kind})
    if is_dataclass(kind):
        return partial(_object, kind)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return partial(_row, kind, tuple(map(_reader, get_type_hints(kind, include_extras=True).values())))
    if is_typeddict(kind):
        return partial(_typed_dict, kind)
    raise TypeError(f"{kind!r} has no form in JSON")


def _scalar(kind: type, value: object, place: str) -> object:
    if type(value) is int and kind in (int, float):
        if not -(1 << 63) <= value < 1 << 64:
            raise _wrong(place, value, f"{_SCALARS[kind]} of at most 64 bits")
        return kind(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise _wrong(place, value, _SCALARS[kind])
    return value


def _checked(read: _Reader, checks: tuple[Callable[[Any], Any], ...], value: object, place: str) -> object:
    found = read(value, place)
    for check in checks:
        try:
            found = check(found)
        except ValueError as error:
            raise MessageError(f"field '{place}' {error}") from None
    return found


def _optional(read: _Reader, value: object, place: str) -> object:
    return None if value is None else read(value, place)


def _chosen(choices: Mapping[object, object], value: object, place: str) -> object:
    # A list cannot be looked up, and True is equal to 1.
    if type(value) not in (str, int) or value not in choices:
        raise _wrong(place, value, ", ".join(map(str, choices)))
    return choices[value]


def _listed(read: _Reader, value: object, place: str) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(place, value, "a list")
    return tuple(read(each, f"{place}[{index}]") for index, each in enumerate(value))


def _mapped(key: type, read: _Reader, value: object, place: str) -> dict[object, object]:
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "an object")
    return {_key(key, name, place): read(each, f"{place}.{name}") for name, each in value.items()}


def _key(kind: type, name: object, place: str) -> object:
    """Return a key; JSON has numbers as text. Only one way to write a number, so that none is there twice."""
    if kind is str:
        return str(name)
    text = str(name)
    if not (text.isascii() and text.isdigit()) or len(text) > 20 or str(int(text)) != text:
        raise MessageError(f"a key of field '{place}' is {_shown(name)}", valid="a whole number, 0 or more")
    return int(text)


def _row(kind: type, readers: tuple[_Reader, ...], value: object, place: str) -> object:
    names = cast("tuple[str, ...]", kind._fields)  # type: ignore[attr-defined]
    if not isinstance(value, list | tuple) or len(value) != len(names):
        raise _wrong(place, value, f"a list of {', '.join(names)}")
    return kind(*(read(each, f"{place}.{name}") for read, each, name in zip(readers, value, names, strict=True)))


def _typed_dict(kind: Any, value: object, place: str) -> object:
    """Only the names are checked: the values are what the engine counts, and of its types."""
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "an object")
    for name in kind.__annotations__:
        if name in kind.__required_keys__ and name not in value:
            raise _missing(place, name, value)
    return value


def _object(kind: Any, value: object, place: str) -> object:
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "an object")
    known, readers = _sent_fields(kind), _readers_of(kind)
    for name in value:
        if name not in known:
            raise MessageError(f"field '{_inside(place, name)}' is unknown", valid=known)
    found = {}
    for name, declared in known.items():
        if name in value:
            found[name] = readers[name](value[name], _inside(place, name))
        elif declared.default is MISSING and declared.default_factory is MISSING:
            raise _missing(place, name, value)
    try:
        return kind(**found)
    except ValueError as error:
        raise MessageError(f"field '{place}': {error}" if place else str(error)) from None


@cache
def _readers_of(kind: type) -> dict[str, _Reader]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: _reader(hints[name]) for name in _sent_fields(kind)}


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _missing(place: str, name: str, given: Mapping[Any, object]) -> MessageError:
    names = ", ".join(sorted(map(str, given))) or "none"
    return MessageError(f"field '{_inside(place, name)}' is missing (given: {names})")


def _wrong(place: str, value: object, valid: str) -> MessageError:
    what = f"field '{place}' is" if place else "a message is"
    return MessageError(f"{what} {_shown(value)}", valid=valid)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
