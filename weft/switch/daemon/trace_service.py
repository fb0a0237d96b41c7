"""Tracing packets of a switch in another process: a gRPC method beside P4Runtime, with JSON as messages.

`weft trace SWITCH` is its client. One trace at a time for each switch.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weft.switch.backend import NotReadyError
from weft.switch.native import NativeSwitch
from weft.switch.trace.events import PacketTrace
from weft.switch.trace.show import json_events
from weft.switch.trace.story import Line, Storyteller

SERVICE = "weft.Trace"
METHOD = "Watch"
MAX_PACKETS = 10_000


class WatchRequest(BaseModel):
    """Trace the next `packets` received on `port` (None: any), for `timeout_s` at most."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device_id: int = Field(ge=0, lt=2**64)
    packets: int = Field(default=1, ge=1, le=MAX_PACKETS)
    port: int | None = Field(default=None, ge=0, le=511)
    timeout_s: float = Field(default=10.0, gt=0, le=3600)


class WatchedPacket(BaseModel):
    """A packet's story and its events (switch.trace.show.json_events). `ended` False: it was still under way."""

    story: Line
    events: list[dict[str, Any]]
    ended: bool


def handler(switches: Mapping[int, NativeSwitch]) -> grpc.GenericRpcHandler:
    """What a gRPC server needs to serve traces of `switches`."""

    def watch(data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            request = WatchRequest.model_validate_json(data)
        except ValidationError as error:
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        switch = switches.get(request.device_id)
        if switch is None:
            valid = ", ".join(map(str, switches))
            message = f"unknown device id {request.device_id} (valid: {valid})"
            _abort(context, grpc.StatusCode.NOT_FOUND, message)
        for packet in _watch(switch, request, context):
            yield packet.model_dump_json().encode()

    method = grpc.unary_stream_rpc_method_handler(watch)
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str) -> NoReturn:
    context.abort(code, message)
    raise AssertionError("abort raises")


def _watch(
    switch: NativeSwitch, request: WatchRequest, context: grpc.ServicerContext
) -> Iterator[WatchedPacket]:
    program = switch.program
    news = threading.Event()
    try:
        switch.trace.start(request.packets, request.port, ended=news.set)
    except NotReadyError as error:
        _abort(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
    assert program is not None
    teller = Storyteller(program)
    deadline = time.monotonic() + request.timeout_s
    left = request.packets
    try:
        context.add_callback(news.set)  # when the call is over
        while left and context.is_active():
            over = not news.wait(max(0.0, deadline - time.monotonic()))
            news.clear()
            for trace in switch.trace.take(unfinished=over):
                left -= 1
                yield watched_packet(teller, trace)
            if over:
                return
    finally:
        switch.trace.stop()


def watched_packet(teller: Storyteller, trace: PacketTrace) -> WatchedPacket:
    """A packet as it is shown."""
    return WatchedPacket(
        story=teller.packet(trace), events=list(json_events(teller, trace)), ended=trace.root.ended
    )


def watch(address: str, request: WatchRequest) -> Iterator[WatchedPacket]:
    """Packets of a switch that serves at `address`, as they end. grpc.RpcError if it does not, or refuses."""
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_stream(f"/{SERVICE}/{METHOD}")
        for answer in call(request.model_dump_json().encode(), timeout=request.timeout_s + 30):
            yield WatchedPacket.model_validate(json.loads(answer))
