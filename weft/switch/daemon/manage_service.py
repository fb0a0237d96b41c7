"""simple_switch's management functions that P4Runtime lacks: queues' depth and rate, and the time.

`/weft.Switch/Manage` takes JSON (ManageRequest) and answers with JSON. `weft.controller.switch_cli.management` is its
client; under the virtual clock `manage` serves it within the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import grpc
from pydantic import BaseModel, ConfigDict, Field

from weft.errors import Refusal
from weft.port_monitor import has_carrier
from weft.quantities.units import NS_PER_US, PS_PER_US
from weft.switch.daemon.calls import SwitchRequest, abort, read_request
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitch

SERVICE = "weft.Switch"
METHOD = "Manage"
MAX_RATE_PPS = 10**12
MAX_CAPACITY_BYTES = 2**40


class ManageRequest(SwitchRequest):
    """Set values other than None at a port (None: all ports); a rate of 0 packets a second restores the link's rate."""

    port: int | None = Field(default=None, ge=0, le=511)
    queue_capacity_bytes: int | None = Field(default=None, ge=1, le=MAX_CAPACITY_BYTES)
    rate_pps: int | None = Field(default=None, ge=0, le=MAX_RATE_PPS)
    list_ports: bool = False


class PortAnswer(BaseModel):
    """A port: its number, its interface ("" if it has none), and whether it can send."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    interface: str
    is_up: bool


class ManageAnswer(BaseModel):
    """Microseconds since the switch started, and since its clock's epoch; all ports if they are asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    elapsed_us: int
    since_epoch_us: int
    ports: tuple[PortAnswer, ...] = ()


class UnmanageableError(Refusal, ValueError):
    """The request cannot be carried out; the message says why."""


def manage(wired: WiredSwitch, request: ManageRequest, epoch_us: Callable[[], int] | None) -> ManageAnswer:
    """Carry out a request. `epoch_us` returns the time since the epoch; None if the switch began with it.

    Raises UnmanageableError, without changing anything, if it cannot be carried out.
    """
    chosen = list(wired.ports.values()) if request.port is None else [_port(wired, request.port)]
    if request.queue_capacity_bytes is not None and wired.buffer is not None:
        raise UnmanageableError("the ports share the switch's buffer, so none has a queue of its own depth")
    if request.rate_pps and any(port.config.pfc or port.config.credits for port in chosen):
        # MAC frames would wait for a packet's turn, too, and the frames that they stop would arrive meanwhile.
        raise UnmanageableError("a port with PFC or credits has the link's rate, because pauses may not wait")
    with wired.switch.engine.lock():
        for port in chosen:
            if request.queue_capacity_bytes is not None:
                port.transmit.queue_capacity_bytes = request.queue_capacity_bytes
            if request.rate_pps is not None:
                port.transmit.packet_rate_pps = request.rate_pps
        elapsed_us = wired.switch.engine.now_ps // PS_PER_US
    return ManageAnswer(
        elapsed_us=elapsed_us,
        since_epoch_us=elapsed_us if epoch_us is None else epoch_us(),
        ports=tuple(_described(*each) for each in sorted(wired.ports.items())) if request.list_ports else (),
    )


def _described(number: int, port: WiredPort) -> PortAnswer:
    interface = port.config.interface or ""
    is_up = has_carrier(interface) if interface else port.transmit.is_up
    return PortAnswer(number=number, interface=interface, is_up=is_up)


def _port(wired: WiredSwitch, number: int) -> WiredPort:
    if number not in wired.ports:
        raise UnmanageableError(f"there is no port {number}", valid=wired.ports)
    return wired.ports[number]


def handler(switches: Mapping[int, WiredSwitch]) -> grpc.GenericRpcHandler:
    """Return a handler with which a gRPC server manages `switches`."""

    def serve(data: bytes, context: grpc.ServicerContext) -> bytes:
        request, wired = read_request(ManageRequest, data, switches, context)
        try:
            answer = manage(wired, request, lambda: time.time_ns() // NS_PER_US)
        except UnmanageableError as error:
            abort(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return answer.model_dump_json().encode()

    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: grpc.unary_unary_rpc_method_handler(serve)})
