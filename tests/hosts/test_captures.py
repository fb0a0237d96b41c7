"""Captures: what Scapy writes is read, and what is broken is refused with its byte."""

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgWriter, wrpcap

from tests.refusals import refused
from weft.engine import Engine, PcapWriter
from weft.errors import BadInputError
from weft.run.captures import CapturedFrame, read_capture

FRAMES = [Ether(type=0x1234) / bytes([number] * (20 + number)) for number in range(5)]
for _number, _frame in enumerate(FRAMES):
    _frame.time = 1_700_000_000 + _number * 0.25


def expected() -> list[tuple[int, bytes]]:
    return [(number * 250_000_000, bytes(frame)) for number, frame in enumerate(FRAMES)]


def shifted(frames: tuple[CapturedFrame, ...]) -> list[tuple[int, bytes]]:
    return [(frame.time_ns - frames[0].time_ns, frame.data) for frame in frames]


@pytest.mark.parametrize("nano", [False, True])
@pytest.mark.parametrize("endianness", ["<", ">"])
def test_pcap_of_either_byte_order_and_resolution(tmp_path: Path, endianness: str, nano: bool) -> None:
    path = tmp_path / "a.pcap"
    wrpcap(str(path), FRAMES, endianness=endianness, nano=nano)
    assert shifted(read_capture(path)) == expected()


def test_pcapng_of_scapy(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    with PcapNgWriter(str(path)) as writer:
        for frame in FRAMES:
            writer.write(frame)
    assert shifted(read_capture(path)) == expected()


@pytest.mark.parametrize("name", ["a.pcap", "a.pcapng"])
def test_wefts_own_captures(tmp_path: Path, name: str) -> None:
    from tests.hosts.ip_hosts import lone_host
    from tests.hosts.test_ip_stack import to_host

    lone = lone_host()
    path = tmp_path / name
    writer = PcapWriter(str(path))
    lone.host.nic.set_capture(0, writer)
    frame = to_host(mac="02:00:00:00:00:77")
    lone.hears(frame)
    lone.said()
    writer.close()
    assert [each.data for each in read_capture(path)] == [bytes(frame)]
    assert isinstance(lone.host.engine, Engine)


def pcap(*, link_type: int = 1, captured: int = 20, original: int = 20, data: bytes = bytes(20)) -> bytes:
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)
    return header + struct.pack("<IIII", 1, 2, captured, original) + data


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "byte 0: neither pcap nor pcapng"),
        (b"#!/bin/sh\n", "byte 0: neither pcap nor pcapng"),
        (pcap()[:20], "byte 20: the file's header is cut"),
        (pcap(link_type=113), "byte 20: link type 113 (valid: 1, Ethernet)"),
        (pcap()[:30], "byte 24: cut: 6 B are left of a frame's header of 16 B"),
        (pcap()[:-3], "byte 24: cut: 17 B are left of a frame of 20 B"),
        (pcap(original=1500), "byte 24: a frame of 1500 B of which 20 B were captured"),
        (pcap(captured=3, original=3, data=bytes(3)), "byte 24: a frame of 3 B (valid: 14 to 9230)"),
        (bytes.fromhex("0a0d0d0a1c000000"), "byte 0: cut: 8 B are left of a block's header"),
        (bytes.fromhex("0a0d0d0a1c00000012345678"), "byte 8: a section with an unknown byte order"),
        (bytes.fromhex("0a0d0d0a1c0000004d3c2b1a"), "byte 0: a block of 28 B, of which 12 B are left"),
    ],
)
def test_what_is_broken_is_refused_with_its_byte(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(BadInputError) as raised:
        read_capture(path)
    assert f"broken, {problem}" in str(raised.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with refused(BadInputError, problem="not a regular file"):
        read_capture(tmp_path)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_nothing_else_is_raised(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Captures with some bytes changed, cut anywhere: frames, or an error that names the file."""
    path = tmp_path_factory.mktemp("captures") / "changed"
    with PcapNgWriter(str(path)) as writer:
        writer.write(FRAMES[0])
        writer.write(FRAMES[1])
    content = bytearray(data.draw(st.sampled_from([pcap(), path.read_bytes()])))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    with contextlib.suppress(BadInputError):
        read_capture(path)
