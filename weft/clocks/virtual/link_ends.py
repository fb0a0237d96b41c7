"""The two ports of a link under the virtual clock, for failing it and bringing it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from weft.clocks.link_events import counters_of_host
from weft.clocks.virtual.processes import Processes, of_all
from weft.controller.counters import PortCounters
from weft.engine import Link, PortMac, TransmitPort
from weft.results.link_events import Lost
from weft.switch.daemon.wired_switches import WiredSwitches
from weft.topologies import Endpoint, FabricLink, FabricSpec
from weft.traffic.host import Host

if TYPE_CHECKING:
    from weft.engine._core import PortStats

T = TypeVar("T")


@dataclass(frozen=True)
class Direction:
    """A port, the link it sends into, and its receiving half where it has flow control.

    Of several `processes` the `owner` serves the port, and all have its counters. `set_up` has the node know that the
    port's link is there or not.
    """

    transmit: TransmitPort
    link: Link
    mac: PortMac | None
    processes: Processes
    owner: int
    set_up: Callable[[bool], None]

    def fail(self) -> tuple[Lost, Lost]:
        """Bring it down; returns what was lost on the link, and what in the port's queues."""
        before = self.refused()
        self.set_up(False)
        after = self.refused()
        queued = Lost(after.packets - before.packets, after.bytes - before.bytes)
        return Lost(**self.link.cut()), queued

    def lose_all(self) -> Lost:
        """Lose what is on the link, and whatever the port sends into it; returns the former."""
        lost = Lost(**self.link.cut())
        self.link.set_faults(loss=1.0)
        return lost

    def come_back(self) -> None:
        """Bring it up; flow control restarts."""
        self.set_up(True)
        if self.mac is not None:
            self.mac.restart()

    def refused(self) -> Lost:
        """Return what the port has dropped because it was down."""
        return Lost(**self._stats()["down_dropped"])

    def last_refused_ps(self) -> int:
        """Return when it last did so, -1 for never."""
        return self._stats()["last_down_drop_ps"]

    def last_refused_data_ps(self) -> int:
        """Return when it last dropped a packet that carried data, -1 for never."""
        return self._stats()["last_down_data_drop_ps"]

    def _stats(self) -> PortStats:
        return self.processes.of(self.owner, "a port that may be down", self.transmit.stats)


class LinkEnds:
    """Finds the ends of links; `hosts` are the fabric's, in order of rank.

    `owners` are the numbers of the processes that serve the nodes, by name.
    """

    def __init__(
        self,
        fabric: FabricSpec,
        switches: WiredSwitches,
        hosts: Sequence[Host],
        processes: Processes,
        owners: Mapping[str, int],
    ) -> None:
        self._processes = processes
        self._owners = owners
        self._fabric = fabric
        self._switches = switches
        self._hosts: Mapping[str, Host] = {spec.name: host for spec, host in zip(fabric.hosts, hosts, strict=True)}

    def directions(self, link: FabricLink) -> list[Direction]:
        """Return both directions of a link."""
        return [self.direction(*each) for each in link.directions]

    def direction(self, sender: Endpoint, receiver: Endpoint) -> Direction:
        """Return a direction of a link."""
        if sender.node in self._hosts:
            host = self._hosts[sender.node]
            leaf = self._fabric.switch(receiver.node)
            uplink = self._switches.switches[leaf.device_id].ports[receiver.port].uplink_link
            assert uplink is not None
            plane = host.plane(sender.port)
            set_up = partial(host.nic.set_port_up, plane.port)
            return self._served(sender, plane.transmit_port, uplink, plane.mac, set_up)
        wired = self._switches.switches[self._fabric.switch(sender.node).device_id].ports[sender.port]
        return self._served(sender, wired.transmit, wired.link, wired.mac, wired.transmit.set_up)

    def _served(
        self,
        sender: Endpoint,
        transmit: TransmitPort,
        link: Link,
        mac: PortMac | None,
        set_up: Callable[[bool], None],
    ) -> Direction:
        return Direction(transmit, link, mac, self._processes, self._owners[sender.node], set_up)

    def take_recovery_times(self) -> tuple[int, int] | None:
        """Return when the first and the last packet that hosts sent again was acknowledged, since the last call."""
        taken = [
            host.nic.take_recovery_times()
            for name, host in self._hosts.items()
            if self._owners[name] == self._processes.number
        ]
        own = [(first_ps, last_ps) for first_ps, last_ps in taken if first_ps >= 0]
        found = [times for each in of_all(self._processes, "recovery times", own) for times in each]
        return (min(first for first, _ in found), max(last for _, last in found)) if found else None

    def host_counters(self) -> dict[Endpoint, PortCounters]:
        """Return the counters of hosts' NICs by port. They count frames that nodes see, not the MAC's own frames."""
        own = {
            Endpoint(name, port): counted
            for name, host in self._hosts.items()
            if self._owners[name] == self._processes.number
            for port, counted in enumerate(counters_of_host(host.port_traffic()))
        }
        found = of_all(self._processes, "what NICs have counted", own)
        return {end: counted for each in found for end, counted in each.items()}

    def read_ports(self, directions: Mapping[Endpoint, Direction], read: Callable[[Direction], T]) -> dict[Endpoint, T]:
        """Return what is read of ports, each by the process that serves it."""
        own = {end: read(each) for end, each in directions.items() if each.owner == self._processes.number}
        found = of_all(self._processes, "the state of ports", own)
        return {end: state for each in found for end, state in each.items()}

    def read_hosts_of(self, ends: Iterable[Endpoint], read: Callable[[Host, Endpoint], T]) -> dict[Endpoint, T]:
        """Return what is read of hosts' ports, each by the process that serves the host."""
        own = {
            end: read(self._hosts[end.node], end) for end in ends if self._owners[end.node] == self._processes.number
        }
        found = of_all(self._processes, "the state of hosts' ports", own)
        return {end: state for each in found for end, state in each.items()}

    def storm(self, host: str, classes: Sequence[int]) -> None:
        """Have all ports of a host's NIC ask for pauses of these classes without end; none: they stop."""
        for plane in range(len(self._fabric.host(host).nics)):
            mac = self._hosts[host].plane(plane).mac
            assert mac is not None
            mac.storm(list(classes))

    def set_port_up(self, link: FabricLink, up: bool) -> None:
        """Notify the switches at the ends, for members and replicas that watch the port."""
        for end in (link.a, link.b):
            if end.node not in self._hosts:
                device_id = self._fabric.switch(end.node).device_id
                self._switches.switches[device_id].switch.set_port_up(end.port, up)
