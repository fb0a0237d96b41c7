"""Which links between switches the packets of connections take, as the switches' program decides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from weft.switch.daemon.wired_switches import WiredSwitches
from weft.topologies import FabricSpec
from weft.traffic.host import Host
from weft.traffic.jobs.fast_forward import FlowPath
from weft.traffic.schedule_nodes import Channel

_MOST_SWITCHES = 64
"""A packet that goes on beyond so many is in a loop."""


class FlowPaths:
    """Finds paths by asking each switch on the way where it would send a frame of the connection.

    `hosts` are by index in the fabric. The path is a connection's only one if switches choose by the flow alone.
    """

    def __init__(self, fabric: FabricSpec, switches: WiredSwitches, hosts: Sequence[Host]) -> None:
        self._fabric, self._switches, self._hosts = fabric, switches, hosts

    def of(self, connections: Sequence[tuple[int, Channel]]) -> list[FlowPath | None]:
        """Return the egress ports that lead to switches for each connection, a host and its channel.

        None: its packets reach no host, or copies of them do.
        """
        frames: dict[int, tuple[str, int, bytes]] = {}
        for number, (host, channel) in enumerate(connections):
            nic = self._fabric.hosts[host].nic(channel.plane)
            frames[number] = (nic.switch, nic.switch_port, self._hosts[host].frame_of(channel))
        paths: list[list[tuple[str, int]]] = [[] for _ in connections]
        arrived: set[int] = set()
        for _ in range(_MOST_SWITCHES):
            frames = self._next(frames, paths, arrived)
        return [tuple(path) if number in arrived else None for number, path in enumerate(paths)]

    def _next(
        self, frames: dict[int, tuple[str, int, bytes]], paths: list[list[tuple[str, int]]], arrived: set[int]
    ) -> dict[int, tuple[str, int, bytes]]:
        """Have the switches send the frames on that are before them; return those that are before others then."""
        by_switch: dict[str, list[int]] = defaultdict(list)
        for number, (switch, _, _) in frames.items():
            by_switch[switch].append(number)
        following = {}
        for name, numbers in by_switch.items():
            spec = self._fabric.switch(name)
            native = self._switches.switches[spec.device_id].switch.native
            sent = native.would_send([frames[number][1:] for number in numbers])
            for number, left in zip(numbers, sent, strict=True):
                if len(left) != 1:
                    continue
                ((port, frame),) = left
                if spec.port(port).peer_is_host:
                    arrived.add(number)
                    continue
                peer = spec.port(port).peer
                paths[number].append((name, port))
                following[number] = (peer.node, peer.port, frame)
        return following
