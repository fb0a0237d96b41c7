"""Thrift's binary protocol, strict form, over an unframed stream, as BMv2's clients speak it.

Source: apache/thrift, doc/specs/thrift-binary-protocol.md. Numbers are big-endian. A message is 0x8001, its type, its
name and a sequence number, then a struct: fields as (type, id, value) up to a field of type 0. Nothing precedes the
message that says how long it is, so the reader counts what it takes.
"""

from __future__ import annotations

import struct as packed
from enum import IntEnum
from typing import Any, Protocol

from weft.thrift.declaration import BINARY, TEXT, Kind, ListOf, MapOf, Optional, Scalar, Struct, Wire

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
MAX_ITEMS = 65_536
"""Most fields of structs and items of lists and maps in a message. Reading them blocks the event loop."""
MAX_UNKNOWN_FIELDS = 64
"""Most fields of a message that no declaration has; BMv2's structs have 8 fields at most."""
MAX_NAME_BYTES = 256
MAX_DEPTH = 16
"""Most nested values in a field that no declaration has; declared types nest less."""
_VERSION = 0x8001 << 16
_FORMATS = {
    Wire.BOOL: packed.Struct(">?"),
    Wire.BYTE: packed.Struct(">b"),
    Wire.DOUBLE: packed.Struct(">d"),
    Wire.I16: packed.Struct(">h"),
    Wire.I32: packed.Struct(">i"),
    Wire.I64: packed.Struct(">q"),
}
_U32 = packed.Struct(">I")
_FIELD = packed.Struct(">bh")


class MessageType(IntEnum):
    """Types of messages, by their numbers in the protocol."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


class ProtocolError(Exception):
    """The bytes are no message, or break a bound; where the next message begins is unknown."""


class Source(Protocol):
    """A stream of bytes."""

    async def readexactly(self, n: int, /) -> bytes:
        """Return the next n bytes."""


class MessageReader:
    """Reads one message from a stream.

    Raises:
        ProtocolError: it is invalid or too large. asyncio.IncompleteReadError: the stream ends before it.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left_bytes = MAX_MESSAGE_BYTES
        self._left_items = MAX_ITEMS
        self._left_unknown_fields = MAX_UNKNOWN_FIELDS

    async def _take(self, size: int) -> bytes:
        if not 0 <= size <= self._left_bytes:
            raise ProtocolError(f"a message has more than {MAX_MESSAGE_BYTES} bytes, or a value a negative size")
        self._left_bytes -= size
        return await self._source.readexactly(size) if size else b""

    async def _number(self, wire: Wire) -> Any:
        form = _FORMATS[wire]
        return form.unpack(await self._take(form.size))[0]

    async def _wire(self) -> Wire:
        number = await self._number(Wire.BYTE)
        try:
            return Wire(number)
        except ValueError:
            raise ProtocolError(f"there is no type {number}") from None

    async def head(self) -> tuple[int, str, int]:
        """Return a message's type, name and sequence number."""
        (version,) = _U32.unpack(await self._take(_U32.size))
        if version & 0xFFFF0000 != _VERSION:
            raise ProtocolError("this is not Thrift's strict binary protocol")
        size = await self._number(Wire.I32)
        if size > MAX_NAME_BYTES:
            raise ProtocolError(f"a call's name has {size} bytes, more than {MAX_NAME_BYTES}")
        name = await self._take(size)
        return version & 0xFF, name.decode(errors="replace"), await self._number(Wire.I32)

    async def value(self, kind: Kind) -> Any:
        """Return a value of a declared type; a struct as a dict of its fields."""
        if isinstance(kind, Struct):
            return await self._struct(kind)
        if isinstance(kind, ListOf):
            wire = await self._wire()
            count = await self._count()
            if count and wire != kind.item.wire:
                raise ProtocolError(f"a list has items of type {wire.name}, not {kind.item.wire.name}")
            return [await self.value(kind.item) for _ in range(count)]
        if isinstance(kind, MapOf):
            wires = await self._wire(), await self._wire()
            count = await self._count()
            if count and wires != (kind.key.wire, kind.value.wire):
                raise ProtocolError("a map has keys or values of another type")
            return {await self.value(kind.key): await self.value(kind.value) for _ in range(count)}
        if kind.wire is Wire.STRING:
            data = await self._take(await self._number(Wire.I32))
            return data.decode(errors="replace") if kind is TEXT else data
        return await self._number(kind.wire)

    async def _count(self) -> int:
        count: int = await self._number(Wire.I32)
        self._count_items(count)
        return count

    def _count_items(self, count: int) -> None:
        if not 0 <= count <= self._left_items:
            raise ProtocolError(f"a message has more than {MAX_ITEMS} items and fields, or a list a negative size")
        self._left_items -= count

    async def _skip_field(self, wire: Wire, depth: int) -> None:
        """Read the value of a field that no declaration has."""
        if self._left_unknown_fields == 0:
            raise ProtocolError(f"a message has more than {MAX_UNKNOWN_FIELDS} unknown fields")
        self._left_unknown_fields -= 1
        await self._skip(wire, depth)

    async def _struct(self, declared: Struct) -> dict[str, Any]:
        found = {name: _missing(kind) for name, kind in declared.fields.items()}
        fields = list(declared.fields.items())
        while (wire := await self._wire()) is not Wire.STOP:
            self._count_items(1)
            number = await self._number(Wire.I16)
            name, given = fields[number - 1] if 1 <= number <= len(fields) else ("", BINARY)
            kind = given.kind if isinstance(given, Optional) else given
            # As generated code does: a field of another number or type is not this declaration's.
            if name and kind.wire == wire:
                found[name] = await self.value(kind)
            else:
                await self._skip_field(wire, MAX_DEPTH)
        return found

    async def skip_struct(self) -> None:
        """Read a struct that no declaration has."""
        await self._skip(Wire.STRUCT, MAX_DEPTH)

    async def _skip(self, wire: Wire, depth: int) -> None:
        if depth == 0:
            raise ProtocolError(f"values are nested more than {MAX_DEPTH} times")
        if wire is Wire.STRUCT:
            while (inner := await self._wire()) is not Wire.STOP:
                self._count_items(1)
                await self._number(Wire.I16)
                await self._skip_field(inner, depth - 1)
        elif wire in (Wire.LIST, Wire.SET, Wire.MAP):
            inners = [await self._wire() for _ in range(2 if wire is Wire.MAP else 1)]
            for _ in range(await self._count()):
                for inner in inners:
                    await self._skip(inner, depth - 1)
        elif wire is Wire.STRING:
            await self._take(await self._number(Wire.I32))
        elif wire in _FORMATS:
            await self._number(wire)
        else:
            raise ProtocolError(f"no value has the type {wire.name}")


def _missing(kind: Kind | Optional) -> Any:
    """Return what a field has that the sender has left out."""
    if isinstance(kind, Optional):
        return None
    if isinstance(kind, Struct):
        return {name: _missing(each) for name, each in kind.fields.items()}
    if isinstance(kind, ListOf):
        return []
    return {} if isinstance(kind, MapOf) else kind.default


def message(kind: MessageType, name: str, sequence: int, declared: Struct, fields: dict[str, Any]) -> bytes:
    """Return a message with a struct, given as a dict of its fields; None leaves a field out."""
    out = bytearray(_U32.pack(_VERSION | kind))
    _append(out, TEXT, name)
    _append(out, Scalar(Wire.I32, 0), sequence)
    _append(out, declared, fields)
    return bytes(out)


def reply(name: str, sequence: int, kind: Kind | None, result: Any) -> bytes:
    """Return a call's answer; its struct has the result as field 0. Raises OverflowError if a number does not fit."""
    out = bytearray(_U32.pack(_VERSION | MessageType.REPLY))
    _append(out, TEXT, name)
    _append(out, Scalar(Wire.I32, 0), sequence)
    if kind is not None:
        try:
            _append_field(out, 0, kind, result)
        except packed.error as error:
            raise OverflowError(str(error)) from None
    out.append(Wire.STOP)
    return bytes(out)


def _append_field(out: bytearray, number: int, kind: Kind, value: Any) -> None:
    out += _FIELD.pack(kind.wire, number)
    _append(out, kind, value)


def _append(out: bytearray, kind: Kind, value: Any) -> None:
    if isinstance(kind, Struct):
        for number, (name, given) in enumerate(kind.fields.items(), 1):
            if value.get(name) is not None:
                _append_field(out, number, given.kind if isinstance(given, Optional) else given, value[name])
        out.append(Wire.STOP)
    elif isinstance(kind, ListOf):
        out += packed.pack(">bi", kind.item.wire, len(value))
        for each in value:
            _append(out, kind.item, each)
    elif isinstance(kind, MapOf):
        out += packed.pack(">bbi", kind.key.wire, kind.value.wire, len(value))
        for key, each in value.items():
            _append(out, kind.key, key)
            _append(out, kind.value, each)
    elif kind.wire is Wire.STRING:
        data = value.encode() if isinstance(value, str) else value
        out += _FORMATS[Wire.I32].pack(len(data))
        out += data
    else:
        out += _FORMATS[kind.wire].pack(value)
