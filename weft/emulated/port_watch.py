"""Listens to the embedded switches' ports while a lab runs: others may take links down, a person at the prompt, say."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from controller.errors import ControllerError
from controller.fabric import open_channel
from controller.port_states import watch_ports
from topologies import FabricSpec

PortChanged = Callable[[str, int, bool], None]
"""Takes a switch, a port and whether it is up."""


class PortWatch(threading.Thread):
    """Calls `changed` for every port that is down at the start, and for every change; from a thread of its own."""

    def __init__(self, fabric: FabricSpec, address: str, changed: PortChanged) -> None:
        super().__init__(name="port-watch", daemon=True)
        self._fabric = fabric
        self._address = address
        self._changed = changed
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._watch())

    def run(self) -> None:
        """Listen until closed, or until the switches have gone, which whoever asks them for anything notices."""
        asyncio.set_event_loop(self._loop)
        with contextlib.suppress(asyncio.CancelledError, ControllerError):
            self._loop.run_until_complete(self._task)
        self._loop.close()

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._task.cancel)
        self.join()

    async def _watch(self) -> None:
        channel = open_channel(self._address)
        up: dict[tuple[int, int], bool] = {}
        try:
            async for states in watch_ports(channel):
                for device_id, port, now_up in states:
                    if up.get((device_id, port), True) != now_up:
                        self._changed(self._fabric.device(device_id).name, port, now_up)
                    up[device_id, port] = now_up
        finally:
            await channel.close()
