"""`weft trace PROGRAM`: packets through a program without a switch, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from weft.cli import weft
from weft.errors import BadInputError

PROGRAM = Path(__file__).parent / "programs" / "basic_forward.p4"
ROUTE = "add MyIngress.ipv4_lpm hdr.ipv4.dstAddr:0x0a000102/32 MyIngress.ipv4_forward(dstAddr:0x020000000002, port:2)\n"
ROUTED = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.1.2", src="10.0.1.1") / UDP()


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    path = tmp_path / "entries.stf"
    path.write_text(ROUTE)
    return path


def trace(*arguments: object) -> str:
    result = CliRunner().invoke(weft, ["trace", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_tree_shows_the_packet_s_way(entries: Path) -> None:
    lines = trace(PROGRAM, "--stf", entries, "--packet", bytes(ROUTED).hex(), "--port", 1).splitlines()
    assert lines[0] == "packet 1: in by port 1, 42 bytes"
    assert "│   └── table MyIngress.ipv4_lpm: hdr.ipv4.dstAddr = 10.0.1.2 → hit 10.0.1.2/32" in lines
    assert "│           └── ipv4.ttl = 63   ← basic_forward.p4:59: hdr.ipv4.ttl = hdr.ipv4.ttl - 1" in lines
    assert lines[-1] == "└── out by port 2, 42 bytes"


def test_captures_and_json(entries: Path, tmp_path: Path) -> None:
    capture = tmp_path / "packets.pcap"
    wrpcap(str(capture), [ROUTED, ROUTED / b"longer"])
    events = [json.loads(line) for line in trace(PROGRAM, "--stf", entries, "--packet", capture, "--json").splitlines()]
    sent = [(event["packet"], event["port"]) for event in events if event["event"] == "sent"]
    assert sent == [(1, 2), (2, 2)]
    applied = next(event for event in events if event["event"] == "table_applied")
    assert applied["values"] == [0x0A000102]


def test_a_short_packet_and_a_drop_are_explained() -> None:
    output = trace(PROGRAM, "--packet", bytes(ROUTED)[:20].hex())
    assert "parser error PacketTooShort at byte 14" in output
    assert "log: not IPv4: 2048" in output
    assert "set by basic_forward.p4:53: mark_to_drop(standard_metadata)" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([PROGRAM], "no packet for .*: give --packet HEX, --packet FILE.pcap or --stf FILE"),
        ([PROGRAM, "--packet", "xyz"], "--packet 'xyz' is neither hexadecimal digits nor a .pcap file"),
        ([PROGRAM, "--packet", "/nowhere.pcap"], "--packet /nowhere.pcap: No such file or directory"),
        (["/nowhere.json", "--packet", "00"], "/nowhere.json: No such file or directory"),
    ],
)
def test_bad_input_is_reported(arguments: list[object], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        CliRunner().invoke(weft, ["trace", *map(str, arguments)], catch_exceptions=False)


def test_a_file_that_is_no_capture_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "text.pcap"
    path.write_text("no capture, but long enough for a header")
    with pytest.raises(BadInputError, match=r"text\.pcap cannot be read: Not a supported capture file"):
        CliRunner().invoke(weft, ["trace", str(PROGRAM), "--packet", str(path)], catch_exceptions=False)


def test_packets_are_not_for_a_running_switch() -> None:
    result = CliRunner().invoke(weft, ["trace", "p0l0", "--packet", "00"])
    assert "are for a PROGRAM" in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize("name", ["program.json", "program.p4", "packets.pcap"])
def test_files_without_end_are_refused(tmp_path: Path, name: str) -> None:
    endless = tmp_path / name
    endless.symlink_to("/dev/zero")
    arguments = [PROGRAM, "--packet", endless] if name.endswith("pcap") else [endless, "--packet", "00"]
    with pytest.raises(BadInputError, match=f"{name}: this is a device, not a regular file"):
        trace(*arguments)


COUNTING = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> type; }
struct headers { ethernet_t ethernet; }
struct metadata { }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(8) seen;
    register<bit<48>>(4) last;
    register<bit<128>>(4) wide;
    register<bit<8>>(4) mode;
    apply {
        bit<32> count;
        bit<128> sum;
        bit<8> unused;
        bit<32> cell = (bit<32>)standard_metadata.ingress_port;
        seen.read(count, cell);
        seen.write(cell, count + 1);
        seen.write(cell, count + 2);
        last.write(0, hdr.ethernet.source);
        last.write(9, hdr.ethernet.source);
        wide.read(sum, 1);
        wide.write(1, sum + (128w1 << 100));
        mode.read(unused, 2);
        standard_metadata.egress_spec = 2;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def test_state_shows_the_cells_that_a_packet_used(tmp_path: Path) -> None:
    source = tmp_path / "counting.p4"
    source.write_text(COUNTING)
    packets = [f"0200000000010200000000{last:02}9000" for last in (2, 3)]
    options = [source, "--port", 3, *(text for packet in packets for text in ("--packet", packet))]
    second = trace(*options, "--state").partition("packet 2:")[2].splitlines()
    assert second[-5:] == [
        "└── registers, before → after",
        "    ├── I.seen[3]: 2 → 4",
        "    ├── I.last[0]: 02:00:00:00:00:02 → 02:00:00:00:00:03",
        f"    ├── I.wide[1]: {1 << 100:#x} → {2 << 100:#x}",
        "    └── I.mode[2]: 0 (read)",
    ], "a cell beyond an array's end is none"
    assert "registers" not in trace(*options)
    events = [json.loads(line) for line in trace(*options, "--state", "--json", "-n", 1).splitlines()]
    used = [event for event in events if event["event"] == "register_used"]
    assert [(each["register"], each["before"], each["after"]) for each in used] == [
        ("I.seen", 0, 2),
        ("I.last", 0, 0x020000000002),
        ("I.wide", 0, 1 << 100),
        ("I.mode", 0, None),
    ]
    assert {event["packet"] for event in events} == {1}, "-n counts packets"
