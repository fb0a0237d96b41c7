"""Frames from interfaces: the class in which their sender queued them is that of their DSCP."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw, raw

from weft.engine import Collector, Engine, Link, PortMac, TransmitPort

MAC = "02:00:00:00:00:01"
BUFFER_BYTES = 4096
BLOCK_BYTES = 64
CLASSES = tuple(range(8))
INT_SHIM, INTERMEDIATE_SHIM = 0x88B5, 0x88B6
ETHERTYPES = {4: 0x0800, 6: 0x86DD}
CLASS_OF_DSCP = {26: 3, 32: 4, 40: 5, 48: 6, 56: 7, 63: 1}


def frame(version: int, traffic_class: int, shims: tuple[int, ...], payload: int = 64) -> bytes:
    """A packet behind shims, the outermost first."""
    packet: Packet = IP(tos=traffic_class) if version == 4 else IPv6(tc=traffic_class)
    data = raw(packet / UDP(sport=1, dport=4791) / Raw(bytes(payload)))
    ethertype = ETHERTYPES[version]
    for shim in reversed(shims):
        if shim == INT_SHIM:
            data = struct.pack("!BBH42x", 0x10, 5, ethertype) + data
        else:
            data = struct.pack("!HHH", 0x1000, 7, ethertype) + data
        ethertype = shim
    return raw(Ether(dst=MAC, src=MAC, type=ethertype)) + data


class Receiver:
    """A port with credits in all classes that hands on at once what it gets, and whose updates are kept."""

    def __init__(self, class_of_dscp: dict[int, int]) -> None:
        self.engine = Engine()
        self.updates = Collector(self.engine)
        back = Link(self.engine)
        back.connect(self.updates)
        self.node = Collector(self.engine)
        self.mac = PortMac(self.engine, TransmitPort(self.engine, back, rate_bps=10**11), self.node)
        self.mac.enable_credits(
            source_mac=MAC, classes=CLASSES, buffer_bytes=BUFFER_BYTES, largest_frame_bytes=BLOCK_BYTES
        )
        self.mac.classify_by_dscp(class_of_dscp)
        there = Link(self.engine)
        there.connect(self.mac)
        self._sender = TransmitPort(self.engine, there, rate_bps=10**11)

    def credited(self, data: bytes) -> dict[int, int]:
        """Receive a frame from a port that has it in class 2; returns the blocks granted anew, by class."""
        self.updates.clear()
        self._sender.enqueue(data, 2)
        self.engine.run_for(1_000_000)
        if not self.updates.packets:
            return {}
        _, _, update = self.updates.packets[-1]
        limits = [struct.unpack_from("!H", update, 18 + 4 * each)[0] for each in CLASSES]
        return {each: limit - BUFFER_BYTES // 64 for each, limit in enumerate(limits) if limit != BUFFER_BYTES // 64}


shims = st.sampled_from([(), (INT_SHIM,), (INTERMEDIATE_SHIM,), (INTERMEDIATE_SHIM, INT_SHIM)])


@given(version=st.sampled_from([4, 6]), traffic_class=st.integers(0, 255), shims=shims)
def test_the_class_is_that_of_the_dscp(version: int, traffic_class: int, shims: tuple[int, ...]) -> None:
    data = frame(version, traffic_class, shims)
    expected = CLASS_OF_DSCP.get(traffic_class >> 2)
    blocks = -(-len(data) // BLOCK_BYTES)
    receiver = Receiver(CLASS_OF_DSCP)
    assert receiver.credited(data) == ({} if expected is None else {expected: blocks})
    assert receiver.node.received_packets == 1


@settings(max_examples=60)
@given(shims=shims, length=st.integers(14, 75))
def test_frames_cut_short_are_passed_on(shims: tuple[int, ...], length: int) -> None:
    receiver = Receiver(dict.fromkeys(range(64), 3))
    receiver.credited(frame(4, 26 << 2, shims)[:length])
    assert receiver.node.received_packets == 1


@pytest.mark.parametrize(
    "data",
    [
        raw(Ether(dst=MAC, src=MAC) / ARP()),
        frame(4, 104, (INT_SHIM, INT_SHIM)),
        frame(4, 104, (INT_SHIM, INTERMEDIATE_SHIM)),
        raw(Ether(dst=MAC, src=MAC, type=0x0800)) + bytes(60),
        raw(Ether(dst=MAC, src=MAC, type=0x8100)) + bytes(60),
    ],
    ids=["arp", "two INT shims", "shims the other way around", "IPv4 of version 0", "VLAN"],
)
def test_other_frames_are_in_no_lane(data: bytes) -> None:
    receiver = Receiver(dict.fromkeys(range(64), 3))
    assert receiver.credited(data) == {}
    assert receiver.node.received_packets == 1


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ({64: 3}, r"DSCP 64 \(0 to 63\)"),
        ({-1: 3}, r"DSCP -1"),
        ({26: 8}, r"class 8 for DSCP 26 \(0 to 7\)"),
    ],
)
def test_what_there_is_not_is_refused(classes: dict[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Receiver(classes)
