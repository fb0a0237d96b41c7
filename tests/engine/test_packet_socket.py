"""Packet sockets on a veth pair between two network namespaces."""

import itertools
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from tests.namespaces import inside
from weft.engine import Collector, Engine, Link, Node, PacketSocket, PcapWriter, TransmitPort

pytestmark = [
    pytest.mark.mininet,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces"),
]

NEAR, FAR = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
FOREIGN = bytes.fromhex("0200000000aa")
ETH_P_ALL, ETH_P_TEST = 3, 0x88B6
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
PATIENCE_MS = 10_000
MS = 10**9


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Wire:
    """A veth pair: `near` is where the engine is, `far` has a plain socket."""

    near: str
    far: str
    far_socket: socket.socket

    def send(self, *frames: bytes) -> None:
        for frame in frames:
            self.far_socket.send(frame)

    def receive(self) -> list[bytes]:
        """Test frames that have arrived at the far end (tags as in the frame are not restored here)."""
        frames = []
        while True:
            try:
                data, address = self.far_socket.recvfrom(65536)
            except BlockingIOError:
                return frames
            if address[1] == ETH_P_TEST:
                frames.append(data)


@pytest.fixture
def wire() -> Iterator[Wire]:
    near, far = f"engine-a{os.getpid()}", f"engine-b{os.getpid()}"
    made = []
    try:
        for namespace in (near, far):
            ip("netns", "add", namespace)
            made.append(namespace)
        ip("-n", near, "link", "add", "e0", "type", "veth", "peer", "name", "e0", "netns", far)
        for namespace, mac in ((near, NEAR), (far, FAR)):
            ip("-n", namespace, "link", "set", "e0", "addrgenmode", "none", "address", mac.hex(":"), "up")
        with inside(far):
            far_socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        far_socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        far_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        far_socket.setblocking(False)
        with inside(far):
            far_socket.bind(("e0", ETH_P_ALL))
        with far_socket:
            yield Wire(near, far, far_socket)
    finally:
        for namespace in made:
            ip("netns", "delete", namespace)


@pytest.fixture
def real_engine() -> Engine:
    return Engine.real_clock(seed=1)


@pytest.fixture
def open_socket(real_engine: Engine, wire: Wire) -> Callable[..., PacketSocket]:
    def make(node: Node | None = None, port: int = 0, **options: int) -> PacketSocket:
        with inside(wire.near):
            packet_socket = PacketSocket(real_engine, "e0", **options)  # type: ignore[arg-type]
        if node is not None:
            packet_socket.connect(node, port)
        return packet_socket

    return make


def run_until(engine: Engine, condition: Callable[[], bool]) -> None:
    """Run the engine until the condition holds; fail if it never does."""
    for _ in range(PATIENCE_MS):
        if condition():
            return
        engine.run_for(MS)
    pytest.fail("the condition never held")


def lost_on_the_way(packet_socket: PacketSocket) -> int:
    """Frames that the kernel lost, as it may on a busy machine, and counted."""
    stats = packet_socket.stats()
    return stats["no_buffer_packets"] + stats["interface_dropped_packets"]


def frame(payload: bytes, destination: bytes = NEAR, source: bytes = FAR) -> bytes:
    return destination + source + struct.pack("!H", ETH_P_TEST) + payload.ljust(46, b"\0")


def test_frames_arrive_whole_in_order_and_dated(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector, 7)
    before_ps = real_engine.now_ps
    frames = [frame(bytes([i]) * (i * 14)) for i in range(100)]
    wire.send(*frames)
    sent_ps = real_engine.now_ps
    run_until(real_engine, lambda: collector.received_packets == 100)
    assert [(port, data) for _, port, data in collector.packets] == [(7, data) for data in frames]
    times = [t for t, _, _ in collector.packets]
    assert times == sorted(times)
    # Dated by the kernel as they came, though read later; its clock is related to ours to within 0.1 ms here.
    assert before_ps - MS // 10 <= times[0]
    assert times[-1] <= sent_ps + MS // 10
    stats = packet_socket.stats()
    assert (stats["received_packets"], stats["received_bytes"]) == (100, sum(map(len, frames)))
    assert real_engine.lateness()["count"] == 100


def test_frames_go_out_and_are_not_heard_back(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector)
    frames = [frame(i.to_bytes(2, "big"), FAR, NEAR) for i in range(300)]
    for data in frames:
        real_engine.inject(packet_socket, 0, data)
    received: list[bytes] = []
    run_until(
        real_engine,
        lambda: received.extend(wire.receive()) or len(received) + lost_on_the_way(packet_socket) >= 300,
    )
    assert received == [data for data in frames if data in set(received)]
    assert len(received) + lost_on_the_way(packet_socket) == 300
    wire.send(frame(b"the last"))
    run_until(real_engine, lambda: collector.received_packets > 0)
    assert [data for _, _, data in collector.packets] == [frame(b"the last")]
    stats = packet_socket.stats()
    assert stats["transmitted_packets"] + stats["no_buffer_packets"] == 300
    assert stats["transmitted_bytes"] == stats["transmitted_packets"] * len(frames[0])


def test_vlan_tags_survive(real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]) -> None:
    collector = Collector(real_engine)
    open_socket(collector)
    addresses = NEAR + FAR
    rest = struct.pack("!H", ETH_P_TEST) + bytes(range(60))
    tags = [
        bytes.fromhex("8100 6064"),  # priority 3, VLAN 100
        bytes.fromhex("8100 e000"),  # priority tag, VLAN 0
        bytes.fromhex("88a8 00c8"),  # service tag
        bytes.fromhex("88a8 00c8 8100 1064"),  # service tag outside a customer tag
        b"",
    ]
    frames = [addresses + tag + rest for tag in tags]
    wire.send(*frames)
    run_until(real_engine, lambda: collector.received_packets == len(frames))
    assert [data for _, _, data in collector.packets] == frames


@pytest.mark.parametrize("promiscuous", [True, False])
def test_frames_for_others_are_seen_whatever_the_mode(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket], promiscuous: bool
) -> None:
    """A veth device delivers everything; the mode only changes what the device requests of a real card."""
    collector = Collector(real_engine)
    open_socket(collector, promiscuous=promiscuous)
    wire.send(frame(b"x", destination=FOREIGN))
    run_until(real_engine, lambda: collector.received_packets == 1)
    flags = subprocess.run(
        ["ip", "-n", wire.near, "-d", "link", "show", "e0"], check=True, capture_output=True, text=True
    ).stdout
    assert ("promiscuity 1" in flags) == promiscuous


def test_frames_wait_until_somebody_is_connected(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    packet_socket = open_socket()
    wire.send(frame(b"early"))
    collector = Collector(real_engine)
    packet_socket.connect(collector, 1)
    run_until(real_engine, lambda: collector.received_packets == 1)
    assert collector.packets[0][2] == frame(b"early")


def test_what_the_ring_cannot_hold_is_counted(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector, ring_bytes=65536)
    for i in range(500):
        wire.send(frame(i.to_bytes(2, "big")))
    wire_total = 500
    run_until(
        real_engine,
        lambda: collector.received_packets + packet_socket.stats()["ring_dropped_packets"] >= wire_total,
    )
    stats = packet_socket.stats()
    assert 0 < stats["received_packets"] < 500
    assert stats["received_packets"] + stats["ring_dropped_packets"] == 500
    wire.send(frame(b"and on"))
    run_until(real_engine, lambda: collector.packets[-1][2] == frame(b"and on"))
    packet_socket.reset_stats()
    assert set(packet_socket.stats().values()) == {0}


def test_an_uplink_paces_a_burst_without_drift(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    link = Link(real_engine, delay_ps=1000)
    link.connect(collector, 4)
    uplink = TransmitPort(real_engine, link, rate_bps=10_000_000)  # 1,000 bytes in 800 µs
    open_socket(uplink)
    wire.send(*[frame(bytes(986))] * 30)
    run_until(real_engine, lambda: collector.received_packets == 30)
    times = [t for t, _, _ in collector.packets]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == [800_000_000] * 29
    assert uplink.stats()["transmitted"] == {"packets": 30, "bytes": 30_000}


def test_what_cannot_be_sent_is_counted(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    packet_socket = open_socket(Collector(real_engine))
    assert packet_socket.mtu_bytes == 1500
    good = [frame(b"good %d" % i, FAR, NEAR) for i in range(2)]
    tagged = FAR + NEAR + bytes.fromhex("8100 0064") + struct.pack("!H", ETH_P_TEST) + bytes(1500)
    for data in [good[0], frame(bytes(1501), FAR, NEAR), b"", FAR + b"\0", tagged, good[1]]:
        real_engine.inject(packet_socket, 0, data)
    received: list[bytes] = []
    run_until(
        real_engine,
        lambda: received.extend(wire.receive()) or len(received) + lost_on_the_way(packet_socket) >= 3,
    )
    # A busy machine may lose any of the three that can be sent, but not without a count.
    assert len(received) + lost_on_the_way(packet_socket) == 3
    assert [data for data in received if data in good] == [data for data in good if data in received]
    stats = packet_socket.stats()
    assert (stats["oversize_packets"], stats["runt_packets"]) == (1, 2)
    assert stats["transmitted_packets"] + stats["no_buffer_packets"] == 3


@pytest.mark.skipif(
    tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 9),
    reason="needs Linux 6.9, which counts what an interface without a carrier drops",
)
def test_what_the_kernel_takes_and_drops_is_counted(real_engine: Engine, wire: Wire) -> None:
    """An interface whose other end has never been up takes frames, and sending them succeeds."""
    ip("-n", wire.near, "link", "add", "d0", "type", "veth", "peer", "name", "d1")
    ip("-n", wire.near, "link", "set", "d0", "up")
    with inside(wire.near):
        packet_socket = PacketSocket(real_engine, "d0")
    packet_socket.connect(Collector(real_engine))
    for _ in range(5):
        real_engine.inject(packet_socket, 0, frame(b"lost", FAR, NEAR))
    run_until(real_engine, lambda: lost_on_the_way(packet_socket) == 5)
    stats = packet_socket.stats()
    assert stats["transmitted_packets"] == stats["interface_dropped_packets"] == 5
    packet_socket.reset_stats()
    assert set(packet_socket.stats().values()) == {0}


def test_an_interface_may_go_down_and_come_back(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector)
    ip("-n", wire.near, "link", "set", "e0", "down")
    real_engine.inject(packet_socket, 0, frame(b"lost", FAR, NEAR))
    run_until(real_engine, lambda: packet_socket.stats()["interface_down_packets"] == 1)
    ip("-n", wire.near, "link", "set", "e0", "up")
    wire.receive()

    def back() -> bool:
        wire.send(frame(b"back"))
        return collector.received_packets > 0

    run_until(real_engine, back)
    assert packet_socket.stats()["transmitted_packets"] == 0


def test_an_interface_may_vanish(real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]) -> None:
    packet_socket = open_socket(Collector(real_engine))
    ip("-n", wire.near, "link", "delete", "e0")
    real_engine.inject(packet_socket, 0, frame(b"lost", FAR, NEAR))
    run_until(real_engine, lambda: packet_socket.stats()["interface_down_packets"] == 1)
    events = real_engine.events_served
    real_engine.run_for(20 * MS)
    assert real_engine.events_served == events


def test_close_is_final_and_may_be_repeated(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector)
    wire.send(frame(b"unread"))
    packet_socket.close()
    packet_socket.close()
    real_engine.inject(packet_socket, 0, frame(b"too late", FAR, NEAR))
    real_engine.run_for(MS)
    assert packet_socket.stats()["interface_down_packets"] == 1
    assert collector.packets == []
    with pytest.raises(RuntimeError, match="closed"):
        packet_socket.connect(collector)


def test_many_sockets_and_ports_in_one_running_engine(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket]
) -> None:
    """Forty sockets that each receive from the same link, each behind an uplink and a port: all deliver."""
    collector = Collector(real_engine)
    for number in range(40):
        node: Node = collector
        for _ in range(3):
            link = Link(real_engine, delay_ps=1_000_000)
            link.connect(node, number)
            node = TransmitPort(real_engine, link, rate_bps=10**10)
        open_socket(node, ring_bytes=65536)
    real_engine.start()
    wire.send(frame(b"to all"))
    arrived = threading.Event()
    for _ in range(PATIENCE_MS):
        if collector.received_packets == 40:
            break
        arrived.wait(0.001)
    real_engine.stop()
    assert sorted(port for _, port, _ in collector.packets) == list(range(40))
    assert {data for _, _, data in collector.packets} == {frame(b"to all")}


def test_a_capture_holds_both_directions(
    real_engine: Engine, wire: Wire, open_socket: Callable[..., PacketSocket], tmp_path: Path
) -> None:
    collector = Collector(real_engine)
    packet_socket = open_socket(collector)
    capture = PcapWriter(str(tmp_path / "e0.pcap"))
    packet_socket.set_capture(capture, capture)
    wire.send(frame(b"in"))
    run_until(real_engine, lambda: collector.received_packets == 1)
    real_engine.inject(packet_socket, 0, frame(b"out", FAR, NEAR))
    run_until(real_engine, lambda: bool(wire.receive()))
    packet_socket.set_capture(None, None)
    capture.close()
    with RawPcapReader(str(tmp_path / "e0.pcap")) as reader:
        assert [data for data, _ in reader] == [frame(b"in"), frame(b"out", FAR, NEAR)]


def test_a_missing_interface_is_named(real_engine: Engine) -> None:
    with pytest.raises(OSError, match="'no-such-if0'"):
        PacketSocket(real_engine, "no-such-if0")


@pytest.mark.parametrize("name", ["", "longer-than-fifteen-characters"])
def test_an_impossible_name_is_refused(real_engine: Engine, name: str) -> None:
    with pytest.raises(ValueError, match="1 to 15 characters"):
        PacketSocket(real_engine, name)


def test_an_impossible_ring_is_refused(real_engine: Engine) -> None:
    with pytest.raises(ValueError, match="ring_bytes"):
        PacketSocket(real_engine, "lo", ring_bytes=0)
