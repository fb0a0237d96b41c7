"""How services, calls and types of a Thrift port are declared; `binary` derives their encoding from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias


class Wire(IntEnum):
    """Types of values in Thrift's binary protocol, by their numbers there."""

    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


@dataclass(frozen=True)
class Scalar:
    """A single value, and what stands for one that the sender has left out."""

    wire: Wire
    default: Any


@dataclass(frozen=True)
class ListOf:
    """Values of one type in order."""

    item: Kind
    wire: Wire = field(default=Wire.LIST, init=False)


@dataclass(frozen=True)
class MapOf:
    """Values of one type by keys of another."""

    key: Kind
    value: Kind
    wire: Wire = field(default=Wire.MAP, init=False)


@dataclass(frozen=True)
class Optional:
    """A field of a struct that may be missing; it is None then."""

    kind: Kind


@dataclass(frozen=True)
class Struct:
    """Named fields, numbered from 1 in the order of their declaration, as all of BMv2's are."""

    name: str
    fields: Mapping[str, Kind | Optional]
    wire: Wire = field(default=Wire.STRUCT, init=False)


Kind: TypeAlias = Scalar | ListOf | MapOf | Struct

BOOL = Scalar(Wire.BOOL, False)
DOUBLE = Scalar(Wire.DOUBLE, 0.0)
I16 = Scalar(Wire.I16, 0)
I32 = Scalar(Wire.I32, 0)
I64 = Scalar(Wire.I64, 0)
TEXT = Scalar(Wire.STRING, "")
BINARY = Scalar(Wire.STRING, b"")


def struct(name: str, /, **fields: Kind | Optional) -> Struct:
    """Return a struct with these fields."""
    return Struct(name, fields)


@dataclass(frozen=True)
class Method:
    """A call of a service.

    Attributes:
        result: type of its result; None if it has none.
        codes: error codes that its exception carries; None if it has no exception.
        arguments: its arguments, as fields of a struct.
    """

    result: Kind | None
    codes: type[IntEnum] | None
    arguments: Struct


Service: TypeAlias = Mapping[str, Method]


def service(**methods: Method) -> Service:
    """Return a service with these calls; each one's arguments get its name."""
    return {
        name: Method(each.result, each.codes, Struct(name, each.arguments.fields)) for name, each in methods.items()
    }


def call(result: Kind | None, codes: type[IntEnum] | None, /, **arguments: Kind | Optional) -> Method:
    """Return a call; see `Method`."""
    return Method(result, codes, Struct("", arguments))
