"""Framing of Chakra's files: consecutive messages, each preceded by its length as a varint."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from weft.jobs.traces.errors import TraceError

_MOST_LENGTH_BYTES = 5


def framed(message: bytes) -> bytes:
    """Return a message preceded by its length."""
    length, prefix = len(message), bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + message


def unframed(data: bytes, source: str) -> Iterator[memoryview]:
    """Yield the messages of a file. Raises TraceError, with `source`, for a bad length or a truncated message."""
    view, at, number = memoryview(data), 0, 0
    while at < len(data):
        begin, length, shift = at, 0, 0
        while True:
            if at == len(data):
                raise TraceError(f"the file ends at byte {at}, within the length of message {number}", place=source)
            if at - begin == _MOST_LENGTH_BYTES:
                raise TraceError(f"no length of a message at byte {begin} (message {number})", place=source)
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if length > len(data) - at:
            raise TraceError(
                f"message {number} at byte {at} has {length} bytes, but the file ends after {len(data) - at}",
                place=source,
            )
        yield view[at : at + length]
        at += length
        number += 1


def parsed(message_class: type, data: memoryview, source: str, number: int) -> object:
    """Return a parsed message. Raises TraceError if the bytes do not parse."""
    try:
        return message_class.FromString(data)  # type: ignore[attr-defined]
    except (DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"message {number} is no Chakra message: {error}", place=source) from None
