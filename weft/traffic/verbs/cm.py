"""The connection manager of a host: the kernel's rdma_cm for its programs, over queue pair 1 of each port."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from weft.engine import CompletionQueue, _core
from weft.traffic.verbs.queue_pairs import address_of
from weft.verbs.counters import MESSAGE_FOLDERS
from weft.verbs.device import gid_bytes

if TYPE_CHECKING:
    from weft.traffic.host import Host
    from weft.traffic.verbs.ports import VerbsPorts

_MANAGEMENT_NUMBER = 1
_MANAGEMENT_Q_KEY = 0x80010000
_MAD_BYTES = 256
_RECEIVES = 256
"""Messages that may wait at a port; more are dropped and counted, and their senders send them again."""
_SENDS = 256


@dataclass
class _ManagedPort:
    """A port's queue pair 1, and its memory: receives, then sends."""

    queue_pair: _core.UdQueuePair
    completions: CompletionQueue
    buffer: bytearray
    memory: _core.MemoryRegion
    free: list[int]


_SLOT_BYTES = _core.GRH_BYTES + _MAD_BYTES


@dataclass(frozen=True)
class VirtualSurroundings:
    """Surroundings of programs of a virtual run, where a lab's have a kernel and the wall clock.

    Attributes:
        routes: the port that leads to each GID.
        now_ps: the run's time.
        note_client: told of each client of the NIC, by process, that there is, or no more.
        wake: called when messages of the connection manager have come.
    """

    routes: Mapping[bytes, int]
    now_ps: Callable[[], int]
    note_client: Callable[[int, _core.VerbsClient, bool], None]
    wake: Callable[[], None]


class ConnectionManager:
    """Serves descriptors of /dev/infiniband/rdma_cm. Its times are its programs'."""

    def __init__(self, host: Host, ports: VerbsPorts, node_guid: int, virtual: VirtualSurroundings | None) -> None:
        self._host, self._ports, self._virtual = host, ports, virtual
        self._now_ps = _wall_ps if virtual is None else virtual.now_ps
        numbers = range(1, ports.count + 1)
        facts = [
            (port, ports.query(port)["active_mtu"], [gid_bytes(each) for each in ports.gids(port)]) for port in numbers
        ]
        seed = host.config.seed + host.config.rank
        self._native = _core.CmHost(node_guid, facts, seed=seed, asks_kernel=virtual is None)
        for gid, port in ({} if virtual is None else virtual.routes).items():
            self._native.add_route(gid, port)
        self._of_port = {port: self._managed(port) for port in numbers}
        self._sends_without_place = self._sends_refused = 0
        host.device_counts.count_management(self.counters)

    def _managed(self, port: int) -> _ManagedPort:
        completions = CompletionQueue(self._host.engine)
        if self._virtual is not None:
            completions.set_listener(self._virtual.wake)
        buffer = bytearray(_SLOT_BYTES * (_RECEIVES + _SENDS))
        memory = self._host.nic.register_memory(buffer, remote_write=False, local_write=True)
        queue_pair = _core.UdQueuePair(
            self._host.nic,
            self._ports.native_port(port),
            completions,
            q_key=_MANAGEMENT_Q_KEY,
            queue_pair=_MANAGEMENT_NUMBER,
        )
        self._host.device_counts.count(queue_pair)
        for slot in range(_RECEIVES):
            queue_pair.post_receive(memory, slot * _SLOT_BYTES, _SLOT_BYTES, work_id=slot)
        return _ManagedPort(queue_pair, completions, buffer, memory, list(range(_RECEIVES, _RECEIVES + _SENDS)))

    def close(self) -> None:
        """Be told of no more messages."""
        for each in self._of_port.values():
            each.completions.set_listener(None)

    @property
    def descriptors(self) -> Sequence[int]:
        """Those that are readable when messages have come."""
        return [each.completions.fileno() for each in self._of_port.values()]

    def add(self, descriptor: int) -> bool:
        """Take over a program's connection, whose first message has not been read; False if it is not kept."""
        self._set_time()
        return self._native.add_channel(descriptor)

    def serve(self, descriptor: int) -> bool:
        """Serve a program that has something to say; returns whether it is still there."""
        self._set_time()
        is_there = self._native.serve_channel(descriptor)
        self._send()
        return is_there

    def take_messages(self) -> None:
        """Take what has come, and what has left, at all ports."""
        self._set_time()
        for port, managed in self._of_port.items():
            for done in managed.completions.poll():
                if done["kind"] == "send":
                    managed.free.append(done["work_id"])
                elif done["status"] == "success":
                    self._take(port, managed, done["work_id"], done["length_bytes"])
        self._send()

    def _take(self, port: int, managed: _ManagedPort, slot: int, length_bytes: int) -> None:
        start = slot * _SLOT_BYTES
        header = bytes(managed.buffer[start : start + _core.GRH_BYTES])
        mad = bytes(managed.buffer[start + _core.GRH_BYTES : start + length_bytes])
        managed.queue_pair.post_receive(managed.memory, start, _SLOT_BYTES, work_id=slot)
        source, destination = _ends_of(header)
        self._native.receive(port, gid_bytes(destination), gid_bytes(source), mad)

    def _send(self) -> None:
        for port, _, remote, mad in self._native.take_outgoing():
            managed = self._of_port[port]
            if not managed.free:
                self._sends_without_place += 1  # as on a congested wire: the state machine sends it again
                continue
            slot = managed.free.pop()
            start = slot * _SLOT_BYTES
            managed.buffer[start : start + _MAD_BYTES] = mad
            try:
                managed.queue_pair.post_send(
                    managed.memory,
                    start,
                    _MAD_BYTES,
                    destination_mac=self._host.config.nics[port - 1].gateway_mac,
                    destination_ip=str(address_of(int.from_bytes(remote[:8]), int.from_bytes(remote[8:]))),
                    remote_queue_pair=_MANAGEMENT_NUMBER,
                    q_key=_MANAGEMENT_Q_KEY,
                    work_id=slot,
                )
            except ValueError:  # to an address that the port cannot send to; its sender gives up in time
                self._sends_refused += 1
                managed.free.append(slot)

    def counters(self) -> dict[str, int]:
        """Return the counters of messages and losses, by the names of `weft.verbs.counters`."""
        counted: Mapping[str, Any] = self._native.counters
        lost = {
            "cm_unmatched": sum(counted["unmatched"].values()),
            "cm_unreadable": sum(counted["parse_errors"].values()),
            "cm_without_room": counted["without_room"],
            "cm_forgotten_requests": counted["forgotten_requests"],
            "cm_sends_without_place": self._sends_without_place,
            "cm_sends_refused": self._sends_refused,
        }
        messages = {
            f"{folder}/{kind}": sum(counted[source][kind] for source in sources)
            for folder, sources in MESSAGE_FOLDERS.items()
            for kind in _core.cm_messages()
        }
        return lost | messages

    def seconds_to_next_turn(self) -> float | None:
        """Return when `advance` has something to do; None: never."""
        due_ps = self.next_turn_ps
        return None if due_ps is None else max(0.0, (due_ps - self._now_ps()) / 1e12)

    @property
    def next_turn_ps(self) -> int | None:
        """The same as a time of its clock."""
        return self._native.next_deadline_ps

    def advance(self) -> None:
        """Do what is due."""
        self._set_time()
        self._native.advance()
        self._send()

    def _set_time(self) -> None:
        self._native.now_ps = self._now_ps()


def _wall_ps() -> int:
    return time.monotonic_ns() * 1000


def _ends_of(header: bytes) -> tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]:
    """Return source and destination of the 40 bytes before a datagram: IPv6's header, or IPv4's at their end."""
    if header[0] >> 4 == 6:
        return IPv6Address(header[8:24]), IPv6Address(header[24:40])
    return IPv4Address(header[32:36]), IPv4Address(header[36:40])
