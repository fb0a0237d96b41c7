"""A Thrift client of a switch, from the server's own declaration; test_foreign_clients.py has those of others."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from weft.thrift.binary import MessageReader, MessageType, message
from weft.thrift.bmv2 import SERVICES
from weft.thrift.declaration import I32, TEXT, Method, Wire, struct

TIMEOUT_S = 30
_EXCEPTION = struct("exception", code=I32)
_APPLICATION_ERROR = struct("TApplicationException", message=TEXT, type=I32)


class Refused(Exception):
    """A call's own exception; `code` is its code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ApplicationError(Exception):
    """Thrift's exception for all calls."""


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._sequence = 0

    async def readexactly(self, n: int, /) -> bytes:
        """See Source."""
        data = bytearray()
        while len(data) < n:
            part = self.socket.recv(n - len(data))
            if not part:
                raise asyncio.IncompleteReadError(bytes(data), n)
            data += part
        return bytes(data)

    def call(self, name: str, **arguments: Any) -> Any:
        """Call SERVICE:CALL; arguments that are not given are left out."""
        service, _, own_name = name.partition(":")
        method = SERVICES[service][own_name]
        self._sequence += 1
        if "cxt_id" in method.arguments.fields:
            arguments = {"cxt_id": 0, **arguments}
        self.send(message(MessageType.CALL, name, self._sequence, method.arguments, arguments))
        return self.answer(own_name, method)

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.socket.sendall(data)

    def answer(self, name: str, method: Method | None) -> Any:
        """Return the result in the next message, which answers a call."""
        return asyncio.run(self._answer(name, method))

    async def _answer(self, name: str, method: Method | None) -> Any:
        reader = MessageReader(self)
        kind, answered, sequence = await reader.head()
        assert (answered, sequence) == (name, self._sequence)
        if kind == MessageType.EXCEPTION:
            raise ApplicationError((await reader.value(_APPLICATION_ERROR))["message"])
        assert kind == MessageType.REPLY
        assert method is not None
        wire = await reader._wire()
        if wire is Wire.STOP:
            return None
        number = await reader._number(Wire.I16)
        declared = _EXCEPTION if number == 1 else method.result
        assert declared is not None
        assert wire == declared.wire
        value = await reader.value(declared)
        assert await reader._wire() is Wire.STOP
        if number == 1:
            raise Refused(value["code"])
        return value
