"""Logs of packets in simple_switch's words: what a packet's lines are, and files that stay within their size."""

from __future__ import annotations

import errno
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from router_program import router_document
from test_native_router import configure, ipv4_packet

from tests.full_disk import files_limited_to
from weft.switch.native.trace_records import RecordReader
from weft.switch.trace.bmv2_log import Bmv2Log
from weft.switch.trace.events import PacketTrace
from weft.switch.trace.log_file import PacketLogFile

LINE = re.compile(r"\A\[\d\d:\d\d:\d\d\.\d{6}\] \[weft\] \[[DTIE]\] \[\d+\.\d+\] \[cxt 0\] \S")


@pytest.fixture(scope="module")
def twin() -> Twin:
    made = Twin(router_document())
    made.both(configure)
    made.native.trace.start()
    return made


def traced(twin: Twin, port: int, data: bytes) -> PacketTrace:
    return PacketTrace(7, twin.trace(port, data))


def told(twin: Twin, packet: PacketTrace) -> list[str]:
    program = twin.native.program
    assert program is not None
    return list(Bmv2Log(program, 3_600_000_000).lines(packet))


def words(lines: list[str]) -> list[str]:
    return [line.partition("[cxt 0] ")[2] for line in lines]


def test_a_packet_that_is_forwarded(twin: Twin) -> None:
    lines = told(twin, traced(twin, 1, ipv4_packet(0x0C000001, 0x0A010203)))
    assert all(LINE.match(line) for line in lines)
    assert all(line.startswith("[01:00:00.") for line in lines)
    said = words(lines)
    assert said[0] == "Processing packet received on port 1"
    assert said[1:3] == ["Parser 'parser': start", "Parser 'parser' entering state 'start'"]
    inner = ("Parser 'parser': end", "Pipeline 'ingress': start", "Pipeline 'ingress': end")
    outer = ("Pipeline 'egress': start", "Pipeline 'egress': end", "Deparser 'deparser': start")
    places = [said.index(each) for each in (*inner, *outer, "Deparser 'deparser': end")]
    assert places == sorted(places)
    at = said.index("Applying table 'routes'")
    assert said[at + 1 : at + 6] == [
        "Looking up key:\n* ipv4.dst            : 0a010203",
        "Table 'routes': hit",
        "Match key: 10.1.2.3/32",
        "Action entry is route - 3,20000000003,",
        "Action route",
    ]
    assert "Table 'ecmp': miss" in said
    assert said.index("Verified checksum 'ipv4_checksum': failed") < places[0]
    assert re.match(r"Transmitting packet of size \d+ out of port \d", said[-1])


def test_a_packet_that_is_dropped_says_where(twin: Twin) -> None:
    said = words(told(twin, traced(twin, 5, ipv4_packet(1, 2))))
    ended = said.index("Pipeline 'ingress': end")
    assert said[ended + 1] == "Multicast requested for packet"
    assert said[-1] == "Dropping packet: empty_multicast_group"


@pytest.mark.parametrize(
    ("port", "said_of_copies"),
    [
        (3, [f"Replicating packet on port {port}" for port in (1, 2, CPU_PORT)]),
        (4, ["Cloning packet at ingress", *(f"Replicating packet on port {port}" for port in (7, 8))]),
    ],
)
def test_copies_begin_behind_the_ingress_pipeline(twin: Twin, port: int, said_of_copies: list[str]) -> None:
    lines = told(twin, traced(twin, port, ipv4_packet(0x0C000001, 0x0A010203)))
    said = words(lines)
    assert [line for line in said if line in said_of_copies] == said_of_copies
    assert said.count("Pipeline 'ingress': start") == 1
    assert said.count("Pipeline 'egress': start") == said.count("Deparser 'deparser': end") >= 2


@given(st.sampled_from([0, 1, 2, 3, 4, CPU_PORT]), st.binary(max_size=80))
def test_any_packet_has_lines_and_its_parts_begin_and_end(twin: Twin, port: int, data: bytes) -> None:
    lines = told(twin, traced(twin, port, data))
    by_copy: dict[str, list[str]] = {}
    for line in lines:
        assert LINE.match(line)
        by_copy.setdefault(line.split("] ")[3], []).append(line.partition("[cxt 0] ")[2])
    for said in by_copy.values():
        parts = [line for line in said if line.endswith((": start", ": end"))]
        for begun, ended in zip(parts[::2], parts[1::2], strict=True):
            assert begun.removesuffix("start") == ended.removesuffix("end")


def test_a_full_file_becomes_the_one_before(twin: Twin, tmp_path: Path) -> None:
    program = twin.native.program
    assert program is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    path = tmp_path / "s1.log"
    path.symlink_to(elsewhere)
    before = tmp_path / "s1.log.1"
    before.write_text("of a run before")
    packet = traced(twin, 1, ipv4_packet(0x0C000001, 0x0A010203))
    size_bytes = len("".join(f"{line}\n" for line in Bmv2Log(program).lines(packet)).encode())
    file = PacketLogFile(path, max_bytes=2 * size_bytes)
    assert not before.exists()
    for _ in range(5):
        file.write(program, [packet])
    file.write(program, [], missed=4)
    file.close()
    assert elsewhere.read_text() == "kept"
    assert path.read_text().endswith("[weft] 4 packets came too fast to be logged\n")
    assert path.stat().st_size == size_bytes + len("[weft] 4 packets came too fast to be logged\n")
    assert (tmp_path / "s1.log.1").stat().st_size == 2 * size_bytes


def test_a_full_disk_is_kept_and_nothing_more_is_written(twin: Twin, tmp_path: Path) -> None:
    program = twin.native.program
    assert program is not None
    packet = traced(twin, 1, ipv4_packet(0x0C000001, 0x0A010203))
    file = PacketLogFile(tmp_path / "s1.log")
    with files_limited_to(1000):
        file.write(program, [packet, packet])
    assert file.error == errno.EFBIG
    file.write(program, [packet])
    file.close()
    assert (tmp_path / "s1.log").stat().st_size == 1000


def test_packets_that_wait_when_another_program_is_loaded_stay() -> None:
    twin = Twin(router_document())
    twin.both(configure)
    trace, first = twin.native.trace, twin.native.program
    assert first is not None
    trace.from_first, trace.keeps_before_load = 10, True
    trace.start()
    packet = ipv4_packet(0x0C000001, 0x0A010203)
    twin.native.process(1, packet)
    twin.native.load(first)
    twin.native.process(1, packet)
    twin.native.process(1, packet)
    found = [len(packets) for _, packets in trace.take_by_program()]
    assert found == [1, 2]
    assert [len(packets) for _, packets in trace.take_by_program()] == [0]


def test_the_engine_goes_on_while_records_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading takes Python some hundred microseconds a packet, for which all switches of a lab would stand still."""
    twin = Twin(router_document())
    twin.native.trace.start()
    twin.native.process(1, ipv4_packet(0x0C000001, 0x0A010203))
    feed, locked = RecordReader.feed, []

    def lock() -> None:
        with twin.native.engine.lock():
            locked.append(True)

    def feed_beside_the_engine(reader: RecordReader, records: bytes) -> None:
        beside = threading.Thread(target=lock)
        beside.start()
        beside.join(timeout=30)
        assert locked
        feed(reader, records)

    monkeypatch.setattr(RecordReader, "feed", feed_beside_the_engine)
    ((_, packets),) = twin.native.trace.take_by_program()
    assert len(packets) == 1
