"""Which ports are up, as the embedded switches report (`weft.switch.daemon.port_service` has the format)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

import grpc

from weft.controller.fabric import Channel
from weft.controller.failures import Failures
from weft.controller.refusals import explain
from weft.topologies import Endpoint, FabricSpec

WATCH_PORTS = "/weft.Ports/Watch"


class PortState(NamedTuple):
    """Whether a port's interface is up and has a carrier."""

    device_id: int
    port: int
    up: bool


def decode_port_states(message: bytes) -> list[PortState]:
    """Read a message of the server's."""
    return [PortState(*each) for each in json.loads(message)["ports"]]


async def watch_ports(channel: Channel, name: str = "ports") -> AsyncIterator[list[PortState]]:
    """Yield all ports of a server's switches that have an interface, then changes as they come; `name` is for errors.

    Yields nothing if the server does not report ports (BMv2).

    Raises:
        SwitchUnavailableError: no answer, or it has gone.

    """
    call = channel.unary_stream(WATCH_PORTS)(b"")
    try:
        async for message in call:
            yield decode_port_states(message)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise explain(name, "Ports/Watch", error) from None
    finally:
        call.cancel()


async def port_states(channel: Channel, name: str = "ports") -> dict[tuple[int, int], bool]:
    """Return the present states by device id and port. Errors as `watch_ports`."""
    states: dict[tuple[int, int], bool] = {}
    async for reported in watch_ports(channel, name):
        states = {(each.device_id, each.port): each.up for each in reported}
        break
    return states


def failures_of(fabric: FabricSpec, states: Mapping[tuple[int, int], bool]) -> Failures:
    """Return the links that have a port which is down at one of their ends."""
    down: Iterable[tuple[int, int]] = (key for key, up in states.items() if not up)
    links = set()
    for device_id, number in down:
        switch = fabric.device(device_id)
        links.add(frozenset((Endpoint(switch.name, number), switch.port(number).peer)))
    return Failures(links=frozenset(links))


def peers_of_ports_down(
    fabric: FabricSpec | None, device_id: int, states: Mapping[tuple[int, int], bool]
) -> list[str]:
    """Return the neighbours behind a switch's ports that are down, or the port numbers if its fabric is unknown.

    A neighbour with several links to the switch is named with its port.
    """
    down = [port for (device, port), up in sorted(states.items()) if device == device_id and not up]
    if fabric is None:
        return [f"port {port}" for port in down]
    switch = fabric.device(device_id)
    peers = [switch.port(port).peer for port in down]
    return [
        str(peer) if len(fabric.links_between(switch.name, peer.node)) > 1 else peer.node for peer in peers
    ]
