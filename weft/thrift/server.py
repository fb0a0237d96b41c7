"""Listens on Thrift ports of this machine.

Any process of the machine can connect to a port on loopback, and the protocol has neither authentication nor the size
of a message. So users can be restricted as at P4Runtime's port, and clients, sizes and times have bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self

from weft.controller.blocking import LoopThread
from weft.controller.grpc_targets import GrpcTarget
from weft.switch.p4runtime.callers import users_of
from weft.system.thrift_ports import Served
from weft.thrift.binary import MessageReader, MessageType, ProtocolError, message, reply
from weft.thrift.bmv2 import SERVICES
from weft.thrift.calls import CallRefusedError, CallUnsupportedError
from weft.thrift.declaration import I32, TEXT, Method, struct
from weft.thrift.gateway import Gateway

MAX_CLIENTS = 32
"""Most clients of a port at a time. Idle ones stay: a controller may wait for hours between two calls."""
MESSAGE_TIMEOUT_S = 10.0
"""Longest time from a message's first byte to its last one, and for the client to take an answer."""
_ADDRESS = "127.0.0.1"
_SEPARATOR = ":"
_APPLICATION_ERROR = struct("TApplicationException", message=TEXT, type=I32)
_UNKNOWN_METHOD, _INVALID_MESSAGE_TYPE, _INTERNAL_ERROR = 1, 2, 6
"""Types of Thrift's TApplicationException."""
_REFUSAL = struct("result", ouch=struct("exception", code=I32))
"""An answer with a call's exception, which each of BMv2's declares as field 1 with a code."""
_LOGGER = logging.getLogger(__name__)


class ThriftServers:
    """Serves switches on their Thrift ports while entered, in a thread.

    Args:
        switches: where each switch serves P4Runtime, by its Thrift port.
        users: users of the machine that may connect; None for all.
    """

    def __init__(self, switches: Mapping[int, Served], users: Collection[int] | None = None) -> None:
        self._switches = dict(switches)
        self._users = None if users is None else frozenset(users)
        self._loop = LoopThread()
        self._ports: list[_Port] = []
        self.failures: dict[int, OSError] = {}
        """Ports that cannot be served, because another process has them, with the reasons."""

    def __enter__(self) -> Self:
        self._loop.start()
        try:
            self._loop.run(self._open())
        except BaseException:
            self._loop.stop()
            raise
        return self

    async def _open(self) -> None:
        for number, served in self._switches.items():
            gateway = Gateway(
                f"the switch at Thrift port {number}", GrpcTarget(served.address, served.device_id), number
            )
            port = _Port(number, gateway, self._users)
            try:
                await port.open()
            except OSError as error:
                number_of_error = error.errno or 0
                # The kernel's words: asyncio puts them into a sentence.
                self.failures[number] = OSError(number_of_error, os.strerror(number_of_error))
            else:
                self._ports.append(port)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self._close())
        finally:
            self._loop.stop()

    async def _close(self) -> None:
        for port in self._ports:
            await port.close()


class _Port:
    """One switch's port."""

    def __init__(self, number: int, gateway: Gateway, users: frozenset[int] | None) -> None:
        self._number = number
        self._gateway = gateway
        self._users = users
        self._clients: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen. Raises OSError."""
        self._server = await asyncio.start_server(self._meet, _ADDRESS, self._number)

    async def close(self) -> None:
        """End all connections and the session."""
        assert self._server is not None
        self._server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        await self._gateway.close()

    def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MAX_CLIENTS:
            _LOGGER.warning("Thrift port %d: a client more than %d is turned away", self._number, MAX_CLIENTS)
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients.add(task)
        task.add_done_callback(self._clients.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self._require_allowed(writer)
            await self._gateway.welcome()
            while first := await reader.read(1):
                answer = await self._answer(_Preceded(first, reader))
                if answer:
                    writer.write(answer)
                    async with asyncio.timeout(MESSAGE_TIMEOUT_S):
                        await writer.drain()
        except (ProtocolError, PermissionError) as error:
            _LOGGER.warning("Thrift port %d: a client is cut off: %s", self._number, str(error))
        except TimeoutError:
            _LOGGER.warning("Thrift port %d: a client takes longer than %g s", self._number, MESSAGE_TIMEOUT_S)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        except Exception:  # an error of one call must not end the port
            _LOGGER.exception("Thrift port %d: a call has failed", self._number)
        finally:
            # Not close(): it would wait for a client that takes no answers.
            with contextlib.suppress(OSError):
                if writer.transport.get_write_buffer_size():
                    writer.transport.abort()
                else:
                    writer.close()

    def _require_allowed(self, writer: asyncio.StreamWriter) -> None:
        """Raise PermissionError for a client of another user."""
        if self._users is None:
            return
        host, port = writer.get_extra_info("peername")[:2]
        users = users_of((ip_address(host), port), {self._number})
        if not users or not users <= self._users:
            raise PermissionError(f"it is the user {', '.join(map(str, users)) or 'of an ended connection'}'s")

    async def _answer(self, source: _Preceded) -> bytes:
        """Return the answer to the next message; empty if it wants none. Raises ProtocolError and what reading does."""
        async with asyncio.timeout(MESSAGE_TIMEOUT_S):
            reader = MessageReader(source)
            kind, name, sequence = await reader.head()
            method = _method(name)
            if method is None or kind != MessageType.CALL:
                await reader.skip_struct()
            else:
                arguments = await reader.value(method.arguments)
        own_name = name.rpartition(_SEPARATOR)[2]
        if kind != MessageType.CALL:
            if kind == MessageType.ONEWAY:
                return b""
            return _failure(own_name, sequence, _INVALID_MESSAGE_TYPE, f"a message of type {kind} is not a call")
        if method is None:
            return _failure(own_name, sequence, _UNKNOWN_METHOD, f"unknown call {name[:80]!r}; services: {_SERVICES}")
        return await self._carried_out(own_name, sequence, method, arguments)

    async def _carried_out(self, name: str, sequence: int, method: Method, arguments: dict[str, Any]) -> bytes:
        try:
            result = await self._gateway.carry_out(name, method, arguments)
        except CallRefusedError as error:
            if method.codes is not type(error.code):
                return _failure(name, sequence, _INTERNAL_ERROR, str(error))
            return message(MessageType.REPLY, name, sequence, _REFUSAL, {"ouch": {"code": error.code}})
        except CallUnsupportedError as error:
            return _failure(name, sequence, _INTERNAL_ERROR, str(error))
        try:
            return reply(name, sequence, method.result, result)
        except OverflowError as error:  # P4Runtime's handles and counters are unsigned
            return _failure(name, sequence, _INTERNAL_ERROR, f"the answer has no place for a number: {error}")


_SERVICES = ", ".join(SERVICES)


def _method(name: str) -> Method | None:
    """Return the call of a message: SERVICE:CALL, as TMultiplexedProtocol names it."""
    service, _, call = name.partition(_SEPARATOR)
    return SERVICES.get(service, {}).get(call)


def _failure(name: str, sequence: int, kind: int, reason: str) -> bytes:
    fields = {"message": reason, "type": kind}
    return message(MessageType.EXCEPTION, name, sequence, _APPLICATION_ERROR, fields)


class _Preceded:
    """A stream after its first byte has been taken."""

    def __init__(self, first: bytes, rest: asyncio.StreamReader) -> None:
        self._first = first
        self._rest = rest

    async def readexactly(self, n: int, /) -> bytes:
        """See Source."""
        first, self._first = self._first[:n], self._first[n:]
        return first + await self._rest.readexactly(n - len(first))
