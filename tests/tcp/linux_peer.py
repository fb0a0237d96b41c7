"""Weft's TCP machine and the Linux kernel's TCP, on one wire, in real time.

The kernel is a host of a network namespace; the machine's segments are put on the other end of its veth pair as frames,
whose fate on the wire a test decides.
"""

from __future__ import annotations

import itertools
import os
import random
import selectors
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.namespaces import inside
from weft.engine._core import TcpConnection, read_tcp_segment

if TYPE_CHECKING:
    from weft.engine._core import TcpSegmentFields

ETH_P_IP, ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING = 0x0800, 3, 263, 23
MAC = {0: bytes.fromhex("020000000001"), 1: bytes.fromhex("020000000002")}
ADDRESS = {0: "192.0.2.1", 1: "192.0.2.2"}
OURS, LINUX = 0, 1
PORTS = itertools.count(5001)
"""Each connection has its own, so that none hears what an earlier one left."""
IP_BYTES, ETHERNET_BYTES = 20, 14
PATIENCE_S = 60
INFO_OPTIONS = {1: "timestamps", 2: "sack", 4: "window scale", 8: "ecn"}


def internet_checksum(data: bytes) -> int:
    """RFC 1071; 0 of what holds its own checksum."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source: int, segment_bytes: int) -> bytes:
    ends = socket.inet_aton(ADDRESS[source]) + socket.inet_aton(ADDRESS[1 - source])
    return ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, segment_bytes)


def frame_of(segment: bytes, ecn: int) -> bytes:
    """A segment of the machine, from TCP's header on, as a frame to the kernel."""
    checksum = internet_checksum(pseudo_header(OURS, len(segment)) + segment)
    segment = segment[:16] + struct.pack("!H", checksum) + segment[18:]
    header = struct.pack("!BBHHHBBH", 0x45, ecn, IP_BYTES + len(segment), 0, 0x4000, 64, socket.IPPROTO_TCP, 0)
    header += socket.inet_aton(ADDRESS[OURS]) + socket.inet_aton(ADDRESS[LINUX])
    header = header[:10] + struct.pack("!H", internet_checksum(header)) + header[12:]
    return MAC[LINUX] + MAC[OURS] + struct.pack("!H", ETH_P_IP) + header + segment


def segment_of(frame: bytes) -> tuple[bytes, int] | None:
    """A frame's TCP segment and ECN bits; None if it holds no TCP. The kernel's checksums are looked at, too."""
    ip = frame[ETHERNET_BYTES:]
    if frame[12:14] != struct.pack("!H", ETH_P_IP) or ip[9] != socket.IPPROTO_TCP:
        return None
    segment = ip[IP_BYTES : struct.unpack("!H", ip[2:4])[0]]
    assert internet_checksum(pseudo_header(LINUX, len(segment)) + segment) == 0
    return segment, ip[1] & 3


@dataclass
class TcpInfo:
    """Of TCP_INFO (linux/tcp.h), what tests look at."""

    options: set[str]
    congestion_window_segments: int
    retransmitted_segments: int
    timeouts: int
    duplicates_reported: int

    @staticmethod
    def of(kernel: socket.socket) -> TcpInfo:
        raw = kernel.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512).ljust(512, b"\0")
        (window,) = struct.unpack_from("I", raw, 80)
        (retransmitted,) = struct.unpack_from("I", raw, 100)
        (duplicates,) = struct.unpack_from("I", raw, 216)
        (timeouts,) = struct.unpack_from("H", raw, 240)
        options = {name for bit, name in INFO_OPTIONS.items() if raw[5] & bit}
        return TcpInfo(options, window, retransmitted, timeouts, duplicates)


Seen: TypeAlias = "tuple[float, int, TcpSegmentFields, int]"
"""When, in seconds; who sent it; its header; the ECN bits of the packet."""


@dataclass
class Fate:
    """What becomes of segments on the wire: by default all arrive at once."""

    is_lost: Callable[[int, TcpSegmentFields], bool] = lambda _sender, _fields: False
    is_marked: Callable[[int, TcpSegmentFields], bool] = lambda _sender, _fields: False
    is_doubled: Callable[[int, TcpSegmentFields], bool] = lambda _sender, _fields: False


@dataclass
class Wire:
    """A connection of ours and a socket of the kernel's, driven by one loop."""

    ours: TcpConnection
    kernel: socket.socket
    frames: socket.socket
    port: int
    fate: Fate
    began_s: float = field(default_factory=time.monotonic)
    log: list[Seen] = field(default_factory=list)
    to_send: dict[int, bytes] = field(default_factory=lambda: {OURS: b"", LINUX: b""})
    received: dict[int, bytes] = field(default_factory=lambda: {OURS: b"", LINUX: b""})
    kernel_saw_end: bool = False
    kernel_is_served: bool = False

    def now_ps(self) -> int:
        return round((time.monotonic() - self.began_s) * 1e12)

    def sent_by(self, sender: int) -> list[TcpSegmentFields]:
        return [fields for _, who, fields, _ in self.log if who == sender]

    def data_times_s(self, sender: int) -> dict[int, list[float]]:
        """When each segment with data was sent, by its sequence number."""
        times: dict[int, list[float]] = {}
        for now_s, who, fields, _ in self.log:
            if who == sender and fields["payload_bytes"]:
                times.setdefault(fields["sequence"], []).append(now_s)
        return times

    def passes(self, sender: int, segment: bytes, ecn: int) -> list[int]:
        """Note a segment; return the ECN bits of each of its copies behind the wire."""
        fields = read_tcp_segment(segment)
        self.log.append((time.monotonic() - self.began_s, sender, fields, ecn))
        if self.fate.is_lost(sender, fields):
            return []
        behind = 3 if ecn and self.fate.is_marked(sender, fields) else ecn
        return [behind] * (2 if self.fate.is_doubled(sender, fields) else 1)

    def send_ours(self) -> None:
        while (taken := self.ours.take_segment(self.now_ps())) is not None:
            segment, ecn = taken
            for behind in self.passes(OURS, segment, ecn):
                self.frames.send(frame_of(segment, behind))

    def take_frames(self) -> None:
        while True:
            try:
                frame = self.frames.recv(65536)
            except BlockingIOError:
                return
            if (found := segment_of(frame)) is None or found[0][:2] != self.port.to_bytes(2, "big"):
                continue
            for behind in self.passes(LINUX, *found):
                self.ours.on_segment(self.now_ps(), found[0], behind)

    def serve_kernel(self) -> None:
        try:
            if self.to_send[LINUX]:
                self.to_send[LINUX] = self.to_send[LINUX][self.kernel.send(self.to_send[LINUX]) :]
                if not self.to_send[LINUX]:
                    self.kernel.shutdown(socket.SHUT_WR)
            while not self.kernel_saw_end and (data := self.kernel.recv(1 << 16)):
                self.received[LINUX] += data
            self.kernel_saw_end = True
        except (BlockingIOError, InterruptedError):
            pass

    def run(self, until: Callable[[], bool]) -> None:
        """Let both go on until the condition holds; fail if it never does."""
        end_s = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.frames, selectors.EVENT_READ)
            while not until():
                assert time.monotonic() < end_s, "the condition never held"
                deadline_ps = self.ours.next_deadline_ps
                left_s = 0.01 if deadline_ps is None else max(0, (deadline_ps - self.now_ps()) / 1e12)
                selector.select(min(left_s, 0.002))
                self.take_frames()
                if (deadline_ps := self.ours.next_deadline_ps) is not None and deadline_ps <= self.now_ps():
                    self.ours.on_timer(self.now_ps())
                self.received[OURS] += self.ours.read()
                self.send_ours()
                if self.kernel_is_served:
                    self.serve_kernel()

    def is_established(self) -> bool:
        return self.ours.state == "established"

    def exchange(self, ours: bytes, linux: bytes) -> None:
        """Let both send, close behind it, and end."""
        self.kernel_is_served = True
        self.to_send[LINUX] = linux
        self.ours.write(ours)
        self.ours.close()
        self.send_ours()
        self.run(lambda: self.ours.state in ("closed", "time_wait") and self.kernel_saw_end)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def within(namespace: str, *command: str) -> None:
    subprocess.run(["ip", "netns", "exec", namespace, *command], check=True, capture_output=True)


@contextmanager
def cable() -> Iterator[tuple[str, socket.socket]]:
    """A namespace with a kernel's TCP, and a socket for frames at the far end of its only link."""
    near, far = f"tcp-a{os.getpid()}", f"tcp-b{os.getpid()}"
    made = []
    try:
        for namespace in (near, far):
            ip("netns", "add", namespace)
            made.append(namespace)
        ip("-n", near, "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", far)
        for number, namespace in enumerate((near, far)):
            within(namespace, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
            within(namespace, "ethtool", "-K", "e0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
            ip("-n", namespace, "link", "set", "e0", "address", MAC[number].hex(":"), "up")
        ip("-n", far, "address", "add", f"{ADDRESS[LINUX]}/24", "dev", "e0")
        ip(
            "-n",
            far,
            "neigh",
            "add",
            ADDRESS[OURS],
            "lladdr",
            MAC[OURS].hex(":"),
            "dev",
            "e0",
            "nud",
            "permanent",
        )
        with inside(near):
            frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            frames.bind(("e0", ETH_P_ALL))
        with frames:
            frames.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            frames.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            frames.setblocking(False)
            yield far, frames
    finally:
        for namespace in made:
            ip("netns", "delete", namespace)


@contextmanager
def wired(
    far: str,
    frames: socket.socket,
    opener: int,
    fate: Fate | None = None,
    control: str = "cubic",
    **ours: Any,
) -> Iterator[Wire]:
    """A connection between both that one of them opens; the kernel's is closed, whatever happens."""
    port = next(PORTS)
    with inside(far):
        kernel = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with kernel:
        kernel.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        kernel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = TcpConnection(
            source_port=port,
            destination_port=port,
            initial_sequence=random.Random(opener).randrange(2**32),
            **ours,
        )
        wire = Wire(connection, kernel, frames, port, fate or Fate())
        if opener == LINUX:
            connection.listen()
            kernel.bind((ADDRESS[LINUX], port))
            kernel.setblocking(False)
            kernel.connect_ex((ADDRESS[OURS], port))
            wire.run(wire.is_established)
            yield wire
            return
        kernel.bind((ADDRESS[LINUX], port))
        kernel.listen(1)
        kernel.setblocking(False)
        connection.connect()
        wire.send_ours()
        wire.run(wire.is_established)
        wire.kernel, _ = kernel.accept()
        with wire.kernel:
            wire.kernel.setblocking(False)
            yield wire
