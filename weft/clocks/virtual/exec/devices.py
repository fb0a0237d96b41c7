"""RDMA devices of a virtual run's hosts: the sockets where programs find their NICs, and what NICs have for them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.engine import _core
from weft.topologies import FabricSpec
from weft.traffic.host import Host
from weft.traffic.verbs.cm import VirtualSurroundings
from weft.traffic.verbs.socket import VerbsSocket, listening
from weft.verbs.device import gid_bytes


class VirtualDevices:
    """Devices of hosts, each from when it is first asked for until the lab ends.

    Attributes:
        clock: the run's time, for programs.
        on_news: called when a NIC has something for a program, while the fabric runs or stands still.
    """

    def __init__(self, loop: VirtualTimeLoop, fabric: FabricSpec, hosts: Mapping[str, Host], directory: Path) -> None:
        self._loop, self._fabric, self._hosts, self._directory = loop, fabric, hosts, directory
        self.clock = _core.VirtualClockPage()
        self.on_news: Callable[[], object] = lambda: None
        self._sockets: dict[str, VerbsSocket] = {}
        self._clients: dict[int, list[_core.VerbsClient]] = {}

    def close(self) -> None:
        """Let all programs go."""
        for each in self._sockets.values():
            each.close()
        self._sockets.clear()
        self._clients.clear()

    def open(self, host: str) -> None:
        """Have a host's device, from now on."""
        if host in self._sockets:
            return
        spec = self._fabric.host(host)
        planes = {nic.plane: nic.number + 1 for nic in spec.nics}
        routes = {
            gid_bytes(address): planes[nic.plane]
            for other in self._fabric.hosts
            for nic in other.nics
            if nic.plane in planes
            for address in (nic.ipv4.ip, nic.ipv6.ip)
        }
        # Weakly, because the engine keeps what it calls, and the hosts here keep the engine.
        wake = weakref.WeakMethod(self._wake)
        surroundings = VirtualSurroundings(
            routes,
            self._loop.now_ps,
            self._note_client,
            lambda: None if (method := wake()) is None else method(),
        )
        self._sockets[host] = VerbsSocket(listening(self.path(host)), self._hosts[host], surroundings)

    def path(self, host: str) -> Path:
        """Return the path of a host's socket."""
        return self._directory / f"{host}.verbs"

    def descriptors(self) -> list[int]:
        """Return those that are readable when programs ask for something, or messages for them have come."""
        return [each.fileno() for each in self._sockets.values()]

    def _wake(self) -> None:
        self._loop.wake(self.on_news)

    def _note_client(self, pid: int, native: _core.VerbsClient, is_there: bool) -> None:
        if not is_there:
            self._clients[pid].remove(native)
            return
        wake = weakref.WeakMethod(self._wake)
        native.set_news_listener(self.clock, lambda: None if (method := wake()) is None else method())
        self._clients.setdefault(pid, []).append(native)

    def serve(self) -> bool:
        """Serve programs' requests; returns whether there were any."""
        # What a program has posted comes before what it asks.
        served = [each.serve_all(self.take_posted) for each in self._sockets.values()]
        return any(served)

    def take_posted(self) -> None:
        """Take what programs have posted."""
        for clients in self._clients.values():
            for native in clients:
                native.take_posted()

    def take_news(self) -> set[int]:
        """Return the processes for which there has been something since the last time."""
        return {pid for pid, clients in self._clients.items() for each in clients if each.take_news()}

    def events_sent(self) -> int:
        """Return how many events programs have been sent, by which the kernel wakes them."""
        return sum(each.events_sent() for clients in self._clients.values() for each in clients)

    def watch_memory(self, pids: Collection[int]) -> None:
        """Have what NICs write to the memory of these processes, and of no others, taken for news."""
        for pid, clients in self._clients.items():
            for native in clients:
                native.watch_memory(pid in pids)

    def next_turn_ps(self) -> int | None:
        """Return when connections have something to do; None: never."""
        return min(
            (each for socket in self._sockets.values() if (each := socket.next_turn_ps()) is not None), default=None
        )

    def take_turns(self) -> bool:
        """Do what is due of connections; returns whether anything was."""
        due = [each for each in self._sockets.values() if each.seconds_to_next_turn() == 0]
        for each in due:
            each.take_turn()
        return bool(due)
