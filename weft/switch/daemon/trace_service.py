"""Traces packets of a switch in another process: a gRPC method in addition to P4Runtime, with JSON messages.

`weft trace SWITCH` is its client. One trace at a time for each switch.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import grpc
from pydantic import BaseModel, Field

from weft.switch.backend import NotReadyError
from weft.switch.bmv2json import Program
from weft.switch.daemon.calls import SwitchRequest, abort, read_request
from weft.switch.debug.condition_tokens import LONGEST, ConditionError
from weft.switch.debug.conditions import Condition
from weft.switch.debug.register_uses import register_uses
from weft.switch.native import NativeSwitch
from weft.switch.trace.events import PacketTrace
from weft.switch.trace.show import json_events
from weft.switch.trace.story import Line, Storyteller

SERVICE = "weft.Trace"
METHOD = "Watch"
MAX_PACKETS = 10_000
OTHERS, MISSED = "weft-others", "weft-missed"
"""Names of trailing metadata; see Unseen."""


class WatchRequest(SwitchRequest):
    """Trace the next `packets` received on `port` (None: any) that match `when`, for at most `timeout_s`."""

    packets: int = Field(default=1, ge=1, le=MAX_PACKETS)
    port: int | None = Field(default=None, ge=0, le=511)
    timeout_s: float = Field(default=10.0, gt=0, le=3600)
    when: str | None = Field(default=None, max_length=LONGEST)
    with_registers: bool = False


class WatchedPacket(BaseModel):
    """A packet's story and its events (switch.trace.show.json_events). `ended` False: it was still in the switch."""

    story: Line
    events: list[dict[str, Any]]
    ended: bool


def handler(switches: Mapping[int, NativeSwitch]) -> grpc.GenericRpcHandler:
    """Return a handler with which a gRPC server serves traces of `switches`."""

    def watch(data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        request, switch = read_request(WatchRequest, data, switches, context)
        for packet in _watch(switch, request, context):
            yield packet.model_dump_json().encode()

    method = grpc.unary_stream_rpc_method_handler(watch)
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})


def _watch(switch: NativeSwitch, request: WatchRequest, context: grpc.ServicerContext) -> Iterator[WatchedPacket]:
    program = switch.program
    news = threading.Event()
    condition = _condition(request.when, program, context)
    try:
        # Whether a packet matches a condition is known only when it has left.
        wanted = request.packets if condition is None else None
        switch.trace.start(wanted, request.port, ended=news.set)
    except NotReadyError as error:
        abort(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
    assert program is not None
    teller = Storyteller(program)
    missed_before, others = switch.trace.packets_missed, 0
    deadline = time.monotonic() + request.timeout_s
    left = request.packets
    try:
        context.add_callback(news.set)  # when the call is over
        while left and context.is_active():
            over = not news.wait(max(0.0, deadline - time.monotonic())) or time.monotonic() >= deadline
            news.clear()
            for trace in switch.trace.take(unfinished=over):
                if condition is not None and not condition.holds(trace):
                    others += 1
                elif left:
                    left -= 1
                    yield watched_packet(teller, trace, with_registers=request.with_registers)
            if over:
                return
    finally:
        switch.trace.stop()
        missed = switch.trace.packets_missed - missed_before
        context.set_trailing_metadata(((OTHERS, str(others)), (MISSED, str(missed))))


def _condition(text: str | None, program: Program | None, context: grpc.ServicerContext) -> Condition | None:
    if text is None or program is None:
        return None
    try:
        return Condition(text, program)
    except ConditionError as error:
        abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"--when: {error.shown(text)}")


def watched_packet(teller: Storyteller, trace: PacketTrace, *, with_registers: bool = False) -> WatchedPacket:
    """Return a packet's display form, with the register cells that it used if requested."""
    story, events = teller.packet(trace), list(json_events(teller, trace))
    uses = register_uses(teller.program, trace) if with_registers else []
    if uses:
        registers = story.add("registers, before → after", "bold")
        for use in uses:
            registers.add(use.text)
            events.append({"packet": trace.number, "event": "register_used", **asdict(use)})
    return WatchedPacket(story=story, events=events, ended=trace.root.ended)


@dataclass
class Unseen:
    """Packets that a trace did not show: `others` did not match its condition, `missed` arrived too fast to examine.

    `not_examined` match perhaps, and were too many for all to be examined.
    """

    others: int = 0
    missed: int = 0
    not_examined: int = 0


def watch(address: str, request: WatchRequest, unseen: Unseen) -> Iterator[WatchedPacket]:
    """Yield packets of the switch at `address` as they end; then set `unseen`.

    Raises grpc.RpcError if the switch does not serve, or refuses.
    """
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_stream(f"/{SERVICE}/{METHOD}")(
            request.model_dump_json().encode(), timeout=request.timeout_s + 30
        )
        for answer in call:
            yield WatchedPacket.model_validate(json.loads(answer))
        counts = dict(call.trailing_metadata() or ())
        unseen.others, unseen.missed = int(counts.get(OTHERS, 0)), int(counts.get(MISSED, 0))
