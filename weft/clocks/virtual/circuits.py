"""The ports of circuits under the virtual clock: links that are joined to one far end or another.

A port's link knows all its far ends before the run, so that partitions never go further ahead than the shortest delay
between them allows, whatever is joined.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.clocks.virtual.link_ends import Direction, LinkEnds
from weft.switch.daemon.wired_switches import WiredPort, WiredSwitch, WiredSwitches
from weft.topologies import Endpoint, FabricLink, FabricSpec


class VirtualCircuits:
    """See `weft.controller.circuits.CircuitPorts`. Ports that no circuit joins are down.

    Raises:
        TopologyError: the fabric has no circuits.

    """

    def __init__(self, fabric: FabricSpec, switches: WiredSwitches) -> None:
        self._fabric = fabric
        self._switches = switches
        self._far_ends: dict[tuple[Endpoint, Endpoint], int] = {}
        self._led: set[Endpoint] = set()
        """Ports that are dark at the start, and links at their first far end."""
        self._ends: LinkEnds | None = None
        for circuit in fabric.circuits.circuits if fabric.circuits is not None else ():
            for sender, receiver in (circuit, circuit[::-1]):
                self._far_ends[sender, receiver] = self._add(sender, receiver)
        for switch in fabric.switches:
            for port in switch.ports:
                if port.is_dark and not port.leads_to_controller:
                    self._port(Endpoint(switch.name, port.number)).transmit.set_up(False)

    def begin(self, ends: LinkEnds) -> None:
        """Use these ends of links, which are known when the hosts are."""
        self._ends = ends

    def _add(self, sender: Endpoint, receiver: Endpoint) -> int:
        """Make a far end known to a port's link; return its number."""
        port, wired = self._port(sender), self._wired(receiver)
        if self._fabric.switch(sender.node).port(sender.port).peer == receiver:
            return 0
        if sender not in self._led and self._fabric.switch(sender.node).port(sender.port).is_dark:
            self._led.add(sender)
            wired.lead_to(receiver.port, port.link)
            return 0
        return wired.add_far_end(receiver.port, port.link)

    def take_down(self, links: Iterable[FabricLink]) -> tuple[int, int]:
        """See CircuitPorts."""
        in_flight = queued = 0
        for link in links:
            for direction in self._directions(link):
                on_link, in_queue = direction.fail()
                in_flight += on_link.packets
                queued += in_queue.packets
            self._notify(link, up=False)
        return in_flight, queued

    def refused(self, links: Iterable[FabricLink]) -> int:
        """See CircuitPorts."""
        return sum(direction.refused().packets for link in links for direction in self._directions(link))

    def bring_up(self, links: Iterable[FabricLink]) -> None:
        """See CircuitPorts."""
        for link in links:
            for sender, receiver in ((link.a, link.b), (link.b, link.a)):
                line, arriving_at = self._port(sender).link, self._port(receiver)
                line.join(self._far_ends[sender, receiver])
                arriving_at.arrive_by(line)
            for direction in self._directions(link):
                direction.come_back()
            self._notify(link, up=True)

    def _directions(self, link: FabricLink) -> list[Direction]:
        assert self._ends is not None, "circuits change when there are hosts"
        return self._ends.directions(link)

    def _notify(self, link: FabricLink, up: bool) -> None:
        assert self._ends is not None, "circuits change when there are hosts"
        self._ends.set_port_up(link, up)

    def _wired(self, end: Endpoint) -> WiredSwitch:
        return self._switches.switches[self._fabric.switch(end.node).device_id]

    def _port(self, end: Endpoint) -> WiredPort:
        return self._wired(end).ports[end.port]
