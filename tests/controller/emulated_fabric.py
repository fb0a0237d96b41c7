"""A fabric of switches behind the real P4Runtime server, wired as the topology says, without time or loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch, Timing
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server
from weft.topologies import FabricSpec
from weft.topologies.addressing import CPU_PORT

MAX_HOPS = 64


@dataclass(frozen=True)
class Delivery:
    """A frame that reached a host's NIC."""

    host: str
    plane: int
    frame: bytes


class EmulatedFabric:
    """Frames in at hosts, frames out at hosts; `cut` links swallow what they should carry.

    `passed` lists the switches that the last frame sent met, in order.
    """

    def __init__(self, fabric: FabricSpec, address: str, switches: dict[str, Any]) -> None:
        self.fabric = fabric
        self.address = address
        self.switches = switches
        self.cut: set[frozenset[str]] = set()
        self.timing = Timing()
        self.passed: list[str] = []

    def send(self, host: str, plane: int, frame: bytes) -> list[Delivery]:
        """Send a frame from a host; return every frame that arrives at hosts because of it."""
        nic = self.fabric.host(host).nic(plane)
        pending = deque([(nic.switch, nic.switch_port, frame)])
        delivered: list[Delivery] = []
        self.passed = []
        for _ in range(MAX_HOPS):
            if not pending:
                return delivered
            name, port, data = pending.popleft()
            self.passed.append(name)
            for output_port, output in self._process(name, port, data):
                peer = self.fabric.switch(name).port(output_port).peer
                if frozenset((name, peer.node)) in self.cut:
                    continue
                if peer.node in self.switches:
                    pending.append((peer.node, peer.port, output))
                else:
                    delivered.append(Delivery(peer.node, peer.port, output))
        raise AssertionError(f"more than {MAX_HOPS} switch passes for one frame: {list(pending)[:3]}")

    def _process(self, name: str, port: int, data: bytes) -> list[tuple[int, bytes]]:
        switch = self.switches[name]
        if isinstance(switch, NativeSwitch):
            return switch.process(port, data)
        return [(output.port, output.data) for output in switch.process(port, data, self.timing)]


@contextmanager
def emulated(fabric: FabricSpec, native: bool = False) -> Iterator[EmulatedFabric]:
    """Run oracle or native switches and their P4Runtime server on a free loopback port."""
    switches: dict[str, Any] = {
        switch.name: NativeSwitch(name=switch.name) if native else OracleSwitch() for switch in fabric.switches
    }
    devices = {
        switch.device_id: Device(switch.device_id, switches[switch.name], CPU_PORT) for switch in fabric.switches
    }
    server = Server(devices, "127.0.0.1:0")
    server.start()
    try:
        yield EmulatedFabric(fabric, server.address, switches)
    finally:
        server.stop()
