"""Messages between a rank and the coordinator: a header in JSON and bytes behind it, over a Unix socket."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from weft.ranks.errors import RanksError

_LENGTHS = struct.Struct(">IQ")
MAX_HEADER_BYTES = 1 << 20
MAX_DATA_BYTES = 1 << 31


def send(connection: socket.socket, header: dict[str, Any], data: bytes | memoryview = b"") -> None:
    """Send a message; `header` is plain data. Raises OSError."""
    text = json.dumps(header).encode()
    connection.sendall(_LENGTHS.pack(len(text), len(data)) + text)
    if len(data):
        connection.sendall(data)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytearray] | None:
    """Return the next message's header and data; None where the other end has closed the connection.

    Raises:
        OSError: the connection broke. RanksError: what came is no message.
    """
    first = _exactly(connection, _LENGTHS.size)
    if first is None:
        return None
    header_bytes, data_bytes = _LENGTHS.unpack(first)
    if header_bytes > MAX_HEADER_BYTES or data_bytes > MAX_DATA_BYTES:
        raise RanksError(
            f"a message of {header_bytes} + {data_bytes} B", valid=f"{MAX_HEADER_BYTES} + {MAX_DATA_BYTES}"
        )
    text, data = _exactly(connection, header_bytes), _exactly(connection, data_bytes)
    if text is None or data is None:
        return None
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RanksError(f"the header of a message is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise RanksError("the header of a message is no object of JSON")
    return header, data


def _exactly(connection: socket.socket, count: int) -> bytearray | None:
    """Return so many bytes; None where the connection was closed before."""
    data = bytearray(count)
    view, at = memoryview(data), 0
    while at < count:
        got = connection.recv_into(view[at:])
        if not got:
            return None
        at += got
    return data
