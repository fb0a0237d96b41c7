"""P4Runtime within the process: a channel that calls the server's service object, in virtual time.

A request takes half the control latency to the switch, its answer the other half, and so do a stream's messages.
Messages are serialised and parsed as on a real channel, so neither side sees the other's objects. What many requests
share (`SharedRequest`) is parsed once.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, NoReturn

import grpc
from finsy.proto import p4r

from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.clocks.virtual.management import ManagementNetwork
from weft.controller.stub import SharedRequest
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import P4RuntimeService, abort, parse_request
from weft.switch.p4runtime.stream import ControllerStream

_Serialiser = Callable[[Any], bytes]
_Parser = Callable[[bytes], Any]
_READ = "Read"


class _Aborted(Exception):
    """A call that the service has ended; never leaves this module."""

    def __init__(self, error: grpc.aio.AioRpcError) -> None:
        super().__init__(error.details())
        self.error = error


class _Context:
    """The part of grpc.ServicerContext that the service uses."""

    def __init__(self) -> None:
        self._trailing: tuple[tuple[str, Any], ...] = ()

    def set_trailing_metadata(self, metadata: tuple[tuple[str, Any], ...]) -> None:
        self._trailing = metadata

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        none = grpc.aio.Metadata()
        raise _Aborted(grpc.aio.AioRpcError(code, none, grpc.aio.Metadata(*self._trailing), details=details))


class InProcessChannel:
    """Stands for a `grpc.aio.Channel` in P4Runtime's generated stub.

    Args:
        devices: by device id.
        loop: the event loop that keeps virtual time.
        latency_ps: from a request to its answer.
        on_served: called after each call that may have changed a device.
        management: the network that requests, answers and streams' messages take; it may be down.
        shared: given a device and what it answers to a Read here, returns what it answers in the process that serves
            it (`weft.clocks.virtual.processes`).

    """

    def __init__(
        self,
        devices: Mapping[int, Device],
        loop: VirtualTimeLoop,
        latency_ps: int,
        on_served: Callable[[int], None],
        management: ManagementNetwork,
        shared: Callable[[int, list[bytes]], list[bytes]] = lambda _device, answers: answers,
    ) -> None:
        self._devices = devices
        self._service = P4RuntimeService(devices)
        self._loop = loop
        self._there_ps = latency_ps // 2
        # The remainder, so that an odd latency is not a picosecond short.
        self._back_ps = latency_ps - self._there_ps
        self._on_served = on_served
        self._shared = shared
        self._management = management

    def unary_unary(
        self, method: str, request_serializer: _Serialiser, response_deserializer: _Parser, **_: Any
    ) -> Callable[..., Awaitable[Any]]:
        """Return a call with one answer; its `timeout` is never reached, as the switch always answers."""

        async def call(request: Any, timeout: float | None = None) -> Any:
            def serve(received: Any, context: _Context) -> list[bytes]:
                return [self._handler(method)(received, context).SerializeToString()]

            (answer,) = await self._call(method, *_encoded(request, request_serializer), serve)
            return response_deserializer(answer)

        return call

    def unary_stream(
        self, method: str, request_serializer: _Serialiser, response_deserializer: _Parser, **_: Any
    ) -> Callable[..., AsyncIterator[Any]]:
        """Return a call with several answers, which the switch gives at one moment."""

        async def call(request: Any, timeout: float | None = None) -> AsyncIterator[Any]:
            def serve(received: Any, context: _Context) -> list[bytes]:
                answers: Iterator[Any] = self._handler(method)(received, context)
                return [each.SerializeToString() for each in answers]

            for answer in await self._call(method, *_encoded(request, request_serializer), serve):
                yield response_deserializer(answer)

        return call

    def stream_stream(
        self, method: str, request_serializer: _Serialiser, response_deserializer: _Parser, **_: Any
    ) -> Callable[[], InProcessStream]:
        """Return the call that opens a controller's stream."""
        return lambda: InProcessStream(self._devices, self._loop, self._there_ps, self._back_ps, self._management)

    async def close(self) -> None:
        """Do nothing: calls end by themselves."""

    def let_go(self) -> None:
        """Stop serving, and release the devices."""
        del self._devices, self._service, self._loop, self._on_served, self._shared, self._management

    def _handler(self, method: str) -> Callable[[Any, _Context], Any]:
        handler: Callable[[Any, _Context], Any] = getattr(self._service, method.rpartition("/")[2])
        return handler

    async def _call(
        self, method: str, own: bytes, shared: bytes, serve: Callable[[Any, _Context], list[bytes]]
    ) -> list[bytes]:
        await self._management.passes()
        await self._loop.sleep_ps(self._there_ps)
        answers: list[bytes] = []
        failure: grpc.aio.AioRpcError | None = None
        name = method.rpartition("/")[2]
        request = parse_request(name, own, shared)
        try:
            answers = serve(request, _Context())
            # Writes reach the tables of every process, so only what is read has to come from the switch's owner.
            if name == _READ:
                answers = self._shared(request.device_id, answers)
        except _Aborted as aborted:
            failure = aborted.error
        # Also after an error: the other updates of the batch may have been written.
        self._on_served(request.device_id)
        await self._management.passes()
        await self._loop.sleep_ps(self._back_ps)
        if failure is not None:
            raise failure
        return answers


def _encoded(request: Any, serialise: _Serialiser) -> tuple[bytes, bytes]:
    """Return the bytes of a request: its own, and those that it shares with others."""
    if isinstance(request, SharedRequest):
        return request.own, request.shared
    return serialise(request), b""


class InProcessStream:
    """A controller's end of a stream, as `grpc.aio.StreamStreamCall`."""

    def __init__(
        self,
        devices: Mapping[int, Device],
        loop: VirtualTimeLoop,
        there_ps: int,
        back_ps: int,
        management: ManagementNetwork,
    ) -> None:
        self._loop = loop
        self._management = management
        self._there_ps, self._back_ps = there_ps, back_ps
        # Weakly, because the server's end would keep this one, which keeps that one.
        here = weakref.ref(self)

        def send(message: p4r.StreamMessageResponse) -> None:
            if (stream := here()) is not None:
                stream._send(message)

        self._server = ControllerStream(devices, send)
        self._server_gone = False
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._cancelled = False
        self._failure: grpc.aio.AioRpcError | None = None
        self._ended = False

    async def write(self, message: p4r.StreamMessageRequest) -> None:
        """Send a message. Raises asyncio.InvalidStateError once the switch has ended the stream."""
        if self._ended or self._cancelled:
            raise asyncio.InvalidStateError("the stream has ended")
        # Now, not on arrival: the sender may go on to change its message.
        data = message.SerializeToString()
        self._loop.call_after_ps(self._management.held_ps() + self._there_ps, lambda: self._arrive(data))

    async def read(self) -> Any:
        """Return the next message, `grpc.aio.EOF` after the last one."""
        data = None if self._ended else await self._inbox.get()
        if data is None:
            self._ended = True
            return grpc.aio.EOF
        return p4r.StreamMessageResponse.FromString(data)

    async def code(self) -> grpc.StatusCode:
        """Return why the stream has ended."""
        return grpc.StatusCode.OK if self._failure is None else self._failure.code()

    async def details(self) -> str:
        """Return the same in words."""
        return "" if self._failure is None else self._failure.details() or ""

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return nothing."""
        return grpc.aio.Metadata()

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """Return what came with the end."""
        return grpc.aio.Metadata() if self._failure is None else self._failure.trailing_metadata()

    def cancel(self) -> None:
        """Leave; the switch learns of it half a latency later."""
        if not self._cancelled:
            self._cancelled = True
            self._loop.call_after_ps(self._there_ps, self._leave)

    async def done_writing(self) -> None:
        """Leave as `cancel` does; the stream ends when the switch's answer arrives."""
        if not self._cancelled and not self._ended:
            self.cancel()
            self._loop.call_after_ps(self._there_ps + self._back_ps, lambda: self._inbox.put_nowait(None))

    def _arrive(self, data: bytes) -> None:
        if self._server_gone:
            return
        try:
            self._server.take(p4r.StreamMessageRequest.FromString(data))
        except Exception as error:
            try:
                abort(_Context(), error)
            except _Aborted as aborted:
                failure = aborted.error
            self._leave()
            self._loop.call_after_ps(self._back_ps, lambda: self._end(failure))

    def _leave(self) -> None:
        if not self._server_gone:
            self._server_gone = True
            self._server.close()

    def _end(self, failure: grpc.aio.AioRpcError) -> None:
        self._failure = failure
        self._inbox.put_nowait(None)

    def _send(self, message: p4r.StreamMessageResponse) -> None:
        data = message.SerializeToString()
        self._loop.call_after_ps(self._management.held_ps() + self._back_ps, lambda: self._inbox.put_nowait(data))
