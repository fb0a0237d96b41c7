"""Watches the embedded switches' ports while a lab runs: others may take links down, such as a user at the prompt."""

from __future__ import annotations

import threading
from collections.abc import Callable

import grpc

from weft.controller.port_states import WATCH_PORTS, decode_port_states
from weft.topologies import FabricSpec

PortChanged = Callable[[str, int, bool], None]
"""Takes a switch, a port and whether it is up."""


class PortWatch(threading.Thread):
    """Calls `changed` for every port that is down at the start, and for every change; from a thread of its own.

    It does not use the controller's asyncio: gRPC's asyncio serves one event loop per process.
    """

    def __init__(self, fabric: FabricSpec, address: str, changed: PortChanged) -> None:
        super().__init__(name="port-watch", daemon=True)
        self._fabric = fabric
        self._changed = changed
        self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self._call = self._channel.unary_stream(WATCH_PORTS)(b"")

    def run(self) -> None:
        """Watch until closed or until the switches have gone, which the next caller that needs them reports."""
        try:
            self._listen()
        except grpc.RpcError as over:
            # The call is itself the error that ends it; its traceback would keep these frames alive, and so the lab.
            over.__traceback__ = None

    def _listen(self) -> None:
        up: dict[tuple[int, int], bool] = {}
        for message in self._call:
            for device_id, port, now_up in decode_port_states(message):
                switch = self._fabric.device(device_id)
                # A controller's interface is no link of the fabric.
                if up.get((device_id, port), True) != now_up and not switch.port(port).leads_to_controller:
                    self._changed(switch.name, port, now_up)
                up[device_id, port] = now_up

    def close(self) -> None:
        """End it."""
        self._call.cancel()
        self.join()
        self._channel.close()
