"""Two ends of communication management with a network between them that tests decide about."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weft.engine import CmConnections, CmHost

SERVICE = 0x0000000001060000 | 7471


def gid_of(address: str) -> bytes:
    """Return the GID of an IP address."""
    ip = ipaddress.ip_address(address)
    return bytes(10) + b"\xff\xff" + ip.packed if ip.version == 4 else ip.packed


ADDRESSES = {"a": ("10.0.0.1", "fd00::1"), "b": ("10.0.0.2", "fd00::2")}
GIDS = {name: gid_of(first) for name, (first, _) in ADDRESSES.items()}
GUIDS = {"a": 0x0200000000000001, "b": 0x0200000000000002}
QPNS = {"a": 0x11, "b": 0x22}


def other(name: str) -> str:
    """Return the end at the far side."""
    return "b" if name == "a" else "a"


def cm_hosts() -> dict[str, CmHost]:
    """Return both hosts, each with a port and routes to the other's addresses."""
    hosts = {}
    for name, addresses in ADDRESSES.items():
        hosts[name] = CmHost(GUIDS[name], [(1, 3, [gid_of(each) for each in addresses])], seed=ord(name))
        for each in ADDRESSES[other(name)]:
            hosts[name].add_route(gid_of(each))
    return hosts


@dataclass
class End:
    """One host's connections, and what its program knows of the one that is tested."""

    name: str
    connections: CmConnections
    id: int = 0
    events: tuple[str, ...] = ()

    @classmethod
    def new(cls, name: str) -> End:
        end = cls(name, CmConnections(GUIDS[name], seed=ord(name)))
        end.connections.listen(SERVICE)
        return end

    def copy(self) -> End:
        return End(self.name, self.connections.copy(), self.id, self.events)

    def take_events(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Take all events; those of the tested connection are remembered, which is the first that is asked for."""
        found = self.connections.take_events()
        for kind, number, _ in found:
            if kind in ("req_received", "sidr_req_received") and not self.id:
                self.id = number
            self.events += (kind,) if number == self.id else ()
        return found

    @property
    def state(self) -> str:
        known = self.connections.connection(self.id)
        return "gone" if known is None else str(known["state"])

    def receive(self, now_ps: int, mad: bytes) -> None:
        self.connections.receive(now_ps, local=GIDS[self.name], remote=GIDS[other(self.name)], mad=mad)


Act = Callable[[End, int, str, int, dict[str, Any]], None]
"""What a program does about an event: end, time, kind, ID and message."""


@dataclass
class Pair:
    """Both ends and what is under way, in the order of time."""

    act: Act
    now_ps: int = 0
    ends: dict[str, End] = field(default_factory=lambda: {name: End.new(name) for name in "ab"})
    wire: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    sent: int = 0

    def flush(self, fate: Callable[[int], list[int]]) -> None:
        """Hand events to the programs, and messages to the network: `fate` says after how many ps each copy arrives."""
        busy = True
        while busy:
            busy = False
            for end in self.ends.values():
                for kind, number, message in end.take_events():
                    busy = True
                    self.act(end, self.now_ps, kind, number, message)
                for _, _, _, mad in end.connections.take_outgoing():
                    busy = True
                    for after in fate(self.sent):
                        self.wire.append((self.now_ps + after, self.sent, other(end.name), mad))
                    self.sent += 1
        self.wire.sort(key=lambda each: each[:2])

    def step(self, fate: Callable[[int], list[int]]) -> bool:
        """Go to the next arrival or deadline; return False if there is none."""
        deadlines = [end.connections.next_deadline_ps for end in self.ends.values()]
        times = [each for each in deadlines if each is not None] + [each[0] for each in self.wire[:1]]
        if not times:
            return False
        self.now_ps = max(self.now_ps, min(times))
        if self.wire and self.wire[0][0] <= self.now_ps:
            _, _, name, mad = self.wire.pop(0)
            self.ends[name].receive(self.now_ps, mad)
        else:
            for end in self.ends.values():
                end.connections.advance(self.now_ps)
        self.flush(fate)
        return True

    def run(self, fate: Callable[[int], list[int]], until: Callable[[], bool] = lambda: False) -> None:
        """Go on until nothing is left to do, or a condition holds. Raises AssertionError after 5,000 steps."""
        self.flush(fate)
        for _ in range(5000):
            if until() or not self.step(fate):
                return
        raise AssertionError("still busy after 5,000 steps")
