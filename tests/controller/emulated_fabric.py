"""A fabric of oracle switches behind the real P4Runtime server, wired as the topology says, without time or loss."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from switch.oracle import OracleSwitch, Timing
from switch.p4runtime.device import Device
from switch.p4runtime.service import Server
from topologies import FabricSpec
from topologies.addressing import CPU_PORT

MAX_HOPS = 64


@dataclass(frozen=True)
class Delivery:
    """A frame that reached a host's NIC."""

    host: str
    plane: int
    frame: bytes


class EmulatedFabric:
    """Frames in at hosts, frames out at hosts; `cut` links swallow what they should carry."""

    def __init__(self, fabric: FabricSpec, address: str, switches: dict[str, OracleSwitch]) -> None:
        self.fabric = fabric
        self.address = address
        self.switches = switches
        self.cut: set[frozenset[str]] = set()
        self.timing = Timing()

    def send(self, host: str, plane: int, frame: bytes) -> list[Delivery]:
        """Send a frame from a host; return every frame that arrives at hosts because of it."""
        nic = self.fabric.host(host).nic(plane)
        pending = deque([(nic.leaf, nic.leaf_port, frame)])
        delivered: list[Delivery] = []
        for _ in range(MAX_HOPS):
            if not pending:
                return delivered
            name, port, data = pending.popleft()
            for output in self.switches[name].process(port, data, self.timing):
                peer = self.fabric.switch(name).port(output.port).peer
                if frozenset((name, peer.node)) in self.cut:
                    continue
                if peer.node in self.switches:
                    pending.append((peer.node, peer.port, output.data))
                else:
                    delivered.append(Delivery(peer.node, peer.port, output.data))
        raise AssertionError(f"more than {MAX_HOPS} switch passes for one frame: {list(pending)[:3]}")


@contextmanager
def emulated(fabric: FabricSpec) -> Iterator[EmulatedFabric]:
    """Run the switches and their P4Runtime server on a free loopback port."""
    switches = {switch.name: OracleSwitch() for switch in fabric.switches}
    devices = {
        switch.device_id: Device(switch.device_id, switches[switch.name], CPU_PORT)
        for switch in fabric.switches
    }
    server = Server(devices, "127.0.0.1:0")
    server.start()
    try:
        yield EmulatedFabric(fabric, server.address, switches)
    finally:
        server.stop()
