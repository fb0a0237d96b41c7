"""Reads JSON files of traces, and their fields, with errors that name the place."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from weft.cache import read_bytes
from weft.jobs.traces.errors import TraceError
from weft.jobs.traces.memory import check_parsing
from weft.quantities.units import shown

MAX_JSON_BYTES = 1 << 30
_GZIP = b"\x1f\x8b"
_WINDOW = 31
"""zlib's `wbits` for gzip."""
_PARSED_RATIO = 25
"""Memory of parsed JSON, in multiples of its text; measured: 24 for many small objects."""
_HEAD_BYTES = 8192


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, which may be compressed by gzip. Raises TraceError, and OSError."""
    data = read_bytes(path, MAX_JSON_BYTES)
    if data.startswith(_GZIP):
        data = _unpacked(data, path)
    return parsed_json(data, path)


def parsed_json(data: bytes, path: Path) -> Any:
    """Return the content of JSON text. Raises TraceError."""
    check_parsing(len(data), _PARSED_RATIO, "JSON", path)
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"is not valid JSON: {error}", place=path) from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _unpacked(data: bytes, path: Path) -> bytes:
    decompressor = zlib.decompressobj(_WINDOW)
    try:
        text = decompressor.decompress(data, MAX_JSON_BYTES)
    except zlib.error as error:
        raise TraceError(f"is not valid gzip: {error}", place=path) from None
    if decompressor.unconsumed_tail:
        raise TraceError("has too much data when unpacked", place=path, valid=f"up to {MAX_JSON_BYTES} bytes")
    if not decompressor.eof:
        raise TraceError("is cut off", place=path)
    return text


def head_of(path: Path) -> bytes:
    """Return the first bytes of a regular file, unpacked if it is compressed; empty for anything else."""
    if not path.is_file():
        return b""
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_GZIP):
        try:
            return zlib.decompressobj(_WINDOW).decompress(head, _HEAD_BYTES)
        except zlib.error:
            return b""
    return head


class Fields:
    """An object of JSON, or plain data of the same shape, with its place for errors."""

    def __init__(self, held: Any, place: object) -> None:
        if not isinstance(held, Mapping):
            raise TraceError(f"{shown(held)} is no object", place=place)
        self.held = held
        self.place = place

    def __contains__(self, name: str) -> bool:
        """Whether there is a field with this name, other than null."""
        return self.held.get(name) is not None

    def _value(self, name: str, kind: type | tuple[type, ...], what: str, default: Any) -> Any:
        value = self.held.get(name)
        if value is None:
            if default is None:
                raise TraceError(f"{name} is missing", place=self.place)
            return default
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TraceError(f"{name} is {shown(value)}", place=self.place, valid=what)
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises TraceError if it is missing without a default, not a text, or not valid Unicode."""
        value: str = self._value(name, str, "a text", default)
        if not value.isprintable():
            raise TraceError(f"{name} is {shown(value)}", place=self.place, valid="printable characters")
        return value

    def integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Return a whole number, which may be written as text."""
        value = self._value(name, (int, str), f"{least} to {most}", default)
        return whole_number(value, least, most, self.place, name)

    def number(self, name: str, most: float, default: float | None = None) -> float:
        """Return a number from 0 to `most`."""
        value = self._value(name, (int, float), f"0 to {most:g}", default)
        if not 0 <= value <= most:
            raise TraceError(f"{name} is {value}", place=self.place, valid=f"0 to {most:g}")
        return float(value)

    def items(self, name: str, default: list[Any] | None = None) -> list[Any]:
        """Return a list or a tuple."""
        return list(self._value(name, (list, tuple), "a list", default))

    def numbers(self, name: str, most: int, default: list[int] | None = None) -> tuple[int, ...]:
        """Return a list of whole numbers from 0 to `most`, which may be written as text."""
        value = self._value(name, (list, tuple, str), "a list of whole numbers", default)
        return whole_numbers(value, most, self.place, name)


def whole_number(value: Any, least: int, most: int, place: object, name: str) -> int:
    """Return a whole number, which may be written as text. Raises TraceError."""
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isascii():
        value = int(value) if value.removeprefix("-").isdigit() else value
    if type(value) is not int or not least <= value <= most:
        raise TraceError(f"{name} is {shown(value)}", place=place, valid=f"{least} to {most}")
    return value


def whole_numbers(value: Any, most: int, place: object, name: str) -> tuple[int, ...]:
    """Return a list of whole numbers from 0 to `most`, which may be written as text. Raises TraceError."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, (list, tuple)):
        raise TraceError(f"{name} is no list", place=place, valid=f"a list of 0 to {most}")
    return tuple(whole_number(each, 0, most, place, name) for each in value)
