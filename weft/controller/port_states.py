"""Port states reported by the embedded switches (format: `weft.switch.daemon.port_service`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple

import grpc

from weft.controller.errors import ControllerError
from weft.controller.failures import Failures
from weft.controller.grpc_targets import Channel, open_channel
from weft.controller.refusals import explain
from weft.topologies import Endpoint, FabricSpec

WATCH_PORTS = "/weft.Ports/Watch"


class PortState(NamedTuple):
    """A port's state: `up` if its interface is up and has a carrier."""

    device_id: int
    port: int
    up: bool


def decode_port_states(message: bytes) -> list[PortState]:
    """Decode a message of the server."""
    return [PortState(*each) for each in json.loads(message)["ports"]]


async def watch_ports(channel: Channel, name: str = "ports") -> AsyncIterator[list[PortState]]:
    """Yield all ports with an interface of a server's switches, then changes as they come; `name` is for errors.

    Yields nothing if the server does not report ports (BMv2).

    Raises:
        SwitchUnavailableError: the server does not answer or has ended.

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
    """Return the present states by device id and port. Raises as `watch_ports`."""
    states: dict[tuple[int, int], bool] = {}
    async for reported in watch_ports(channel, name):
        states = {(each.device_id, each.port): each.up for each in reported}
        break
    return states


class FollowedPorts:
    """The states of all ports of several servers' switches, kept current while the context manager is active.

    Entering waits until every server has reported its ports.

    Attributes:
        states: whether a port is up, by device id and port number.

    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self.states: dict[tuple[int, int], bool] = {}
        self._channels = {address: open_channel(address) for address in addresses}
        self._unheard = set(self._channels)
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._error: ControllerError | None = None

    async def __aenter__(self) -> FollowedPorts:
        for address, channel in self._channels.items():
            self._tasks.append(asyncio.create_task(self._follow(address, channel)))
        try:
            while self._unheard:
                await self.change()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def change(self, timeout_s: float | None = None) -> None:
        """Wait until a port has changed since the last call, or until the timeout (None: no timeout).

        Raises:
            SwitchUnavailableError: a server does not answer or has ended.

        """
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return
        self._changed.clear()
        if self._error is not None:
            raise self._error

    async def _follow(self, address: str, channel: Channel) -> None:
        try:
            async for reported in watch_ports(channel, address):
                self.states |= {(each.device_id, each.port): each.up for each in reported}
                self._unheard.discard(address)
                self._changed.set()
        except ControllerError as error:
            self._error = error
        self._unheard.discard(address)
        self._changed.set()

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))


def failures_of(fabric: FabricSpec, states: Mapping[tuple[int, int], bool]) -> Failures:
    """Return the links with a port that is down at either end."""
    down: Iterable[tuple[int, int]] = (key for key, up in states.items() if not up)
    links = set()
    for device_id, number in down:
        switch = fabric.device(device_id)
        links.add(frozenset((Endpoint(switch.name, number), switch.port(number).peer)))
    return Failures(links=frozenset(links))


def peers_of_ports_down(fabric: FabricSpec | None, device_id: int, states: Mapping[tuple[int, int], bool]) -> list[str]:
    """Return the neighbours at a switch's ports that are down, or the port numbers if its fabric is unknown.

    A neighbour with several links to the switch is named with its port.
    """
    down = [port for (device, port), up in sorted(states.items()) if device == device_id and not up]
    if fabric is None:
        return [f"port {port}" for port in down]
    switch = fabric.device(device_id)
    peers = [switch.port(port).peer for port in down]
    return [str(peer) if len(fabric.links_between(switch.name, peer.node)) > 1 else peer.node for peer in peers]
