"""Captures without Weft's shims, byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.layers.l2 import ARP, Ether
from scapy.packet import raw

from weft.engine import Collector, Engine, Link, PcapWriter, TransmitPort
from weft.run.captures import read_capture
from weft.traffic.layers import CreditLane, CreditUpdate, IntHop, IntShim, ValiantShim, rdma_write_frame
from weft.traffic.layers.icrc import icrc_is_valid

MACS = {"source_mac": "02:00:00:00:00:01", "destination_mac": "02:01:00:00:00:00"}
IP_TYPES = {4: 0x0800, 6: 0x86DD}
ADDRESSES = {4: ("10.0.0.1", "10.0.0.2"), 6: ("fd00::1", "fd00::2")}


def write(version: int, *, telemetry: bool = False) -> Ether:
    source, destination = ADDRESSES[version]
    frame = rdma_write_frame(
        **MACS,
        source_ip=source,
        destination_ip=destination,
        destination_qp=9,
        psn=4,
        payload=bytes(range(64)),
        int_telemetry=telemetry,
    )
    if telemetry:
        frame[IntShim].hop_count = 2
        frame[IntShim].hops = [IntHop(rate_code=6, timestamp_ns=0x88B6, queue_cells=7)] * 2 + [IntHop()] * 3
    return frame


def by_intermediate(frame: Ether, ethertype: int) -> bytes:
    shim = ValiantShim(intermediate=3, next_ethertype=ethertype)
    return raw(Ether(src=MACS["source_mac"], dst=MACS["destination_mac"]) / shim / frame.payload)


def captured(tmp_path: Path, *frames: bytes, suffix: str = "pcapng", without_shims: bool = True) -> list[bytes]:
    """Return the frames that a port writes as it sends some."""
    engine = Engine()
    link, far_end = Link(engine), Collector(engine)
    link.connect(far_end)
    port = TransmitPort(engine, link, rate_bps=10**11)
    path = tmp_path / f"port.{suffix}"
    writer = PcapWriter(str(path), without_shims=without_shims)
    port.set_capture(writer)
    for frame in frames:
        port.enqueue(frame)
    engine.run()
    writer.close()
    assert [data for _, _, data in far_end.packets] == list(frames)
    return [frame.data for frame in read_capture(path)]


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
@pytest.mark.parametrize("version", [4, 6])
def test_an_ip_frame_is_written_as_it_would_be_without_shims(tmp_path: Path, version: int, suffix: str) -> None:
    """IP's and UDP's lengths and checksums and the iCRC, which do not cover shims, are then right."""
    plain, stamped = write(version), write(version, telemetry=True)
    sent = [
        raw(plain),
        raw(stamped),
        by_intermediate(plain, IP_TYPES[version]),
        by_intermediate(stamped, 0x88B5),
    ]
    assert len({len(frame) for frame in sent}) == 4
    written = captured(tmp_path, *sent, suffix=suffix)
    assert written == [raw(plain)] * 4
    assert icrc_is_valid(written[1])
    assert captured(tmp_path, *sent, suffix=suffix, without_shims=False) == sent


def test_what_is_no_ip_behind_whole_shims_is_written_as_it_is(tmp_path: Path) -> None:
    stamped = raw(write(4, telemetry=True))
    other_next = stamped[:16] + b"\x12\x34" + stamped[18:]
    # A limit of 0x0800 blocks stands where a shim would say that IPv4 follows.
    update = CreditUpdate(lanes=[CreditLane(limit_blocks=0x800)] * 8)
    credits = raw(Ether(src=MACS["source_mac"], dst="01:80:c2:00:00:01") / update)
    assert credits[18:20] == b"\x08\x00"
    cut = [stamped[:length] for length in (14, 17, 59)]
    arp = raw(Ether(src=MACS["source_mac"], dst="ff:ff:ff:ff:ff:ff") / ARP())
    sent = [other_next, credits, *cut, arp]
    assert captured(tmp_path, *sent) == sent
