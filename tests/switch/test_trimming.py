"""Packet trimming: a queue that has no room for a packet has its first bytes sent on in another queue."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.compiler import CompileError, compile_file
from weft.engine import Collector, Engine, Link, SharedBuffer, TransmitPort
from weft.switch.backend import CloneSession, Replica
from weft.switch.bmv2json import Program, load_program
from weft.switch.native import NativeSwitch

BYTE_PS = 8000  # at 1 Gb/s
CAPACITY_BYTES = 3000
RESERVED_BYTES = 1000
SIZE_BYTES = 128
DATA, TRIM = 3, 6
TRIMMABLE, TRIMMED, OTHER = 4, 12, 26
IPV4_AT = 14
(FORWARD, MULTICAST, CLONE) = range(3)
SOURCE = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> ether_type; }
header ipv4_t {
    bit<16> version_to_tos; bit<16> total_length; bit<32> identification; bit<8> ttl; bit<8> protocol;
    bit<16> checksum; bit<32> source; bit<32> destination;
}
header long_t { bit<640> bits; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; long_t long; }
struct of_queue_t { @weft_trimmed bit<1> trimmed; }
struct metadata_t { bit<8> unused; of_queue_t queue; }
parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.ethernet);
        transition select(h.ethernet.ether_type) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(h.ipv4);
        transition select(h.ipv4.protocol) { 77: long; default: accept; }
    }
    state long { packet.extract(h.long); transition accept; }
}
control C(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        s.priority = 3;
        if (h.ethernet.destination == 1) { s.mcast_grp = 1; }
        if (h.ethernet.destination == 2) { clone_preserving_field_list(CloneType.I2E, 1, 0); mark_to_drop(s); }
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        if (m.queue.trimmed == 1) {
            h.ethernet.source = (bit<48>) s.packet_length << 8 | (bit<48>) (bit<8>) s.qid;
        }
    }
}
control D(packet_out packet, in headers_t h) {
    apply { packet.emit(h.ethernet); packet.emit(h.ipv4); packet.emit(h.long); }
}
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    source: Path = tmp_path_factory.mktemp("trimming") / "queue.p4"
    source.write_text(SOURCE)
    return load_program(compile_file(source).json_text().encode())


def checksum(header: bytes) -> int:
    """RFC 1071; 0 over a header with a right checksum."""
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4_frame(size: int, dscp: int, ecn: int = 1, order: int = FORWARD, protocol: int = 17) -> bytes:
    header = bytearray(20)
    header[0], header[1], header[8], header[9] = 0x45, dscp << 2 | ecn, 64, protocol
    header[2:4] = (size - IPV4_AT).to_bytes(2, "big")
    header[12:20] = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    header[10:12] = checksum(bytes(header)).to_bytes(2, "big")
    front = order.to_bytes(6, "big") + bytes(6) + b"\x08\x00" + bytes(header)
    return front + bytes(index % 251 for index in range(size - len(front)))


def trimmed_frame(frame: bytes, length: int, queue: int = TRIM, dscp: int = TRIMMED) -> bytes:
    """The frame as it leaves, written by other means than the switch's."""
    cut = bytearray(frame[:length])
    cut[6:12] = (length << 8 | queue).to_bytes(6, "big")  # the program's
    cut[IPV4_AT + 1] = dscp << 2 | frame[IPV4_AT + 1] & 3
    cut[IPV4_AT + 2 : IPV4_AT + 4] = (length - IPV4_AT).to_bytes(2, "big")
    cut[IPV4_AT + 10 : IPV4_AT + 12] = bytes(2)
    cut[IPV4_AT + 10 : IPV4_AT + 12] = checksum(bytes(cut[IPV4_AT : IPV4_AT + 20])).to_bytes(2, "big")
    return bytes(cut)


class Bench:
    """A switch with a port of 1 Gb/s that trims class 3."""

    def __init__(self, program: Program, buffer: dict[str, Any] | None = None, **trimming: Any) -> None:
        self.engine = Engine(seed=1)
        self.switch = NativeSwitch(self.engine, "s")
        self.collector = Collector(self.engine)
        link = Link(self.engine)
        link.connect(self.collector)
        self.port = TransmitPort(self.engine, link, rate_bps=10**9, queue_capacity_bytes=CAPACITY_BYTES)
        self.switch.native.attach_port(1, self.port)
        self.buffer = None
        if buffer is not None:
            self.buffer = SharedBuffer(self.engine, **buffer)
            self.buffer.add_port(1)
            self.port.set_buffer(self.buffer, 1)
        settings = {"size_bytes": SIZE_BYTES, "reserved_bytes": RESERVED_BYTES, "trimmable_dscps": [TRIMMABLE]}
        self.port.set_trimming(dscp=TRIMMED, priority_class=TRIM, classes=[DATA], **settings | trimming)
        self.switch.load(program)
        self.switch.multicast_group_set(1, [Replica(1, 1)])
        self.switch.clone_session_set(1, CloneSession((Replica(1, 0),), class_of_service=DATA))

    def give(self, frame: bytes, time_ps: int = 0) -> None:
        self.engine.inject(self.switch.native, 0, frame, time_ps)

    def run(self) -> list[bytes]:
        self.engine.run()
        conservation = self.engine.packet_conservation()
        assert conservation["missing"] == {"packets": 0, "bytes": 0}
        if self.buffer is not None:
            assert self.buffer.stats()["used_bytes"] == 0
        return [frame for _, _, frame in self.collector.packets]


def test_which_packets_of_a_burst_are_trimmed(program: Program) -> None:
    """One leaves, three wait, seven fit as headers into the 1,000 B that they have for themselves, and two are lost."""
    bench = Bench(program)
    frames = [ipv4_frame(1000, TRIMMABLE, ecn=number % 4) for number in range(13)]
    for frame in frames:
        bench.give(frame)
    left = bench.run()
    assert left == [frames[0], *(trimmed_frame(frame, SIZE_BYTES) for frame in frames[4:11]), *frames[1:4]]
    stats = bench.port.stats()
    cut_bytes = 9 * (1000 - SIZE_BYTES)
    assert stats["trimmed"] == stats["classes"][DATA]["trimmed"] == {"packets": 9, "bytes": cut_bytes}
    assert stats["trim_dropped"] == {"packets": 2, "bytes": 2 * SIZE_BYTES}
    assert stats["tail_dropped"]["packets"] == stats["classes"][TRIM]["trimmed"]["packets"] == 0
    assert stats["max_queue_depth_bytes"] == CAPACITY_BYTES + 7 * SIZE_BYTES
    conservation = bench.engine.packet_conservation()
    assert conservation["resized_bytes"] == -cut_bytes
    assert conservation["dropped"] == {"queue trimmed": {"packets": 2, "bytes": 2 * SIZE_BYTES}}
    assert bench.switch.drops()["tail_drop"] == 2
    bench.port.reset_stats()
    assert bench.port.stats()["classes"][DATA]["trimmed"] == {"packets": 0, "bytes": 0}


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        pytest.param(ipv4_frame(1000, TRIMMABLE), SIZE_BYTES, id="trimmable"),
        pytest.param(ipv4_frame(1000, OTHER), None, id="not trimmable"),
        pytest.param(ipv4_frame(1000, TRIMMED), None, id="trimmed before"),
        pytest.param(ipv4_frame(1000, TRIMMABLE, order=MULTICAST), None, id="multicast"),
        pytest.param(ipv4_frame(1000, TRIMMABLE, order=CLONE), None, id="clone"),
        pytest.param(bytes(12) + b"\x86\xdd" + bytes(986), None, id="no IP header"),
        pytest.param(ipv4_frame(100, TRIMMABLE), 100, id="short enough"),
        pytest.param(ipv4_frame(SIZE_BYTES, TRIMMABLE), SIZE_BYTES, id="as long as trimmed ones"),
    ],
)
def test_which_packets_may_be_trimmed(program: Program, frame: bytes, kept: int | None) -> None:
    bench = Bench(program)
    for _ in range(4):
        bench.give(ipv4_frame(1000, OTHER))
    bench.give(frame)
    left = bench.run()
    stats = bench.port.stats()
    assert stats["tail_dropped"]["packets"] == (kept is None)
    assert stats["trimmed"] == {"packets": int(kept is not None), "bytes": len(frame) - (kept or len(frame))}
    assert left[1:-3] == ([] if kept is None else [trimmed_frame(frame, kept)])


def test_headers_that_the_program_parses_stay_whole(program: Program) -> None:
    bench = Bench(program, size_bytes=64)
    frame = ipv4_frame(1000, TRIMMABLE, protocol=77)
    for _ in range(5):
        bench.give(frame)
    assert bench.run()[1] == trimmed_frame(frame, IPV4_AT + 20 + 80)


def test_ipv6(program: Program) -> None:
    bench = Bench(program)
    ip = (6 << 28 | TRIMMABLE << 22 | 1 << 20 | 0xABCDE).to_bytes(4, "big") + (946).to_bytes(2, "big") + bytes(34)
    frame = bytes(12) + b"\x86\xdd" + ip + bytes(946)
    for _ in range(5):
        bench.give(frame)
    cut = bytearray(frame[:SIZE_BYTES])
    cut[6:12] = (SIZE_BYTES << 8 | TRIM).to_bytes(6, "big")
    cut[14:18] = (6 << 28 | TRIMMED << 22 | 1 << 20 | 0xABCDE).to_bytes(4, "big")
    cut[18:20] = (SIZE_BYTES - 54).to_bytes(2, "big")
    assert bench.run()[1] == bytes(cut)


def test_a_wrong_checksum_stays_wrong(program: Program) -> None:
    bench = Bench(program)
    frame = bytearray(ipv4_frame(1000, TRIMMABLE))
    frame[IPV4_AT + 10] ^= 1
    for _ in range(5):
        bench.give(bytes(frame))
    assert checksum(bench.run()[1][IPV4_AT : IPV4_AT + 20]) != 0


@dataclass
class Model:
    """The port, as a list of queues: non-preemptive strict priority, one capacity, a reserve for trimmed packets."""

    now_ps: int = 0
    free_at_ps: int = 0
    queues: dict[int, deque[bytes]] = field(default_factory=lambda: {DATA: deque(), TRIM: deque()})
    left: list[bytes] = field(default_factory=list)
    trimmed: int = 0
    tail_dropped: int = 0
    trim_dropped: int = 0

    @property
    def depth_bytes(self) -> int:
        return sum(len(frame) for queue in self.queues.values() for frame in queue)

    def advance(self, time_ps: int) -> None:
        while self.free_at_ps <= time_ps and self.depth_bytes:
            frame = self.queues[TRIM if self.queues[TRIM] else DATA].popleft()
            self.left.append(frame)
            self.free_at_ps += len(frame) * BYTE_PS
        self.now_ps = time_ps

    def take(self, frame: bytes, queue: int) -> None:
        if self.free_at_ps <= self.now_ps:
            self.left.append(frame)
            self.free_at_ps = self.now_ps + len(frame) * BYTE_PS
        else:
            self.queues[queue].append(frame)

    def arrive(self, frame: bytes, time_ps: int, size_bytes: int) -> None:
        self.advance(time_ps)
        if self.depth_bytes + len(frame) <= CAPACITY_BYTES:
            return self.take(frame, DATA)
        if frame[IPV4_AT + 1] >> 2 != TRIMMABLE:
            self.tail_dropped += 1
            return None
        self.trimmed += 1
        cut = trimmed_frame(frame, min(len(frame), size_bytes))
        if self.depth_bytes + len(cut) > CAPACITY_BYTES + RESERVED_BYTES:
            self.trim_dropped += 1
            return None
        return self.take(cut, TRIM)


ARRIVALS = st.lists(
    st.tuples(st.integers(60, 1500), st.sampled_from([TRIMMABLE, TRIMMABLE, OTHER]), st.integers(0, 12_000)),
    min_size=1,
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(ARRIVALS, st.integers(64, 400))
def test_a_port_does_as_a_model_of_it(program: Program, arrivals: list[tuple[int, int, int]], size_bytes: int) -> None:
    bench, model = Bench(program, size_bytes=size_bytes), Model()
    # A packet ends at a whole number of bytes' times behind an arrival, each of which has a fraction of its own.
    for number, (size, dscp, at) in enumerate(sorted(arrivals, key=lambda arrival: arrival[2])):
        frame = ipv4_frame(size, dscp)
        bench.give(frame, at * BYTE_PS + number)
        model.arrive(frame, at * BYTE_PS + number, size_bytes)
    model.advance(10**12)
    assert bench.run() == model.left
    stats = bench.port.stats()
    counted = [stats[name]["packets"] for name in ("trimmed", "tail_dropped", "trim_dropped")]
    assert counted == [model.trimmed, model.tail_dropped, model.trim_dropped]


def test_a_shared_buffer_trims_by_its_thresholds(program: Program) -> None:
    """A queue may take more while it holds less than a quarter of what is free; trimmed packets, while any is."""
    alpha = [0.25] * 8
    alpha[TRIM] = 8.0
    bench = Bench(program, {"capacity_bytes": 10_000, "alpha": alpha})
    frames = [ipv4_frame(1000, TRIMMABLE) for _ in range(8)]
    for frame in frames:
        bench.give(frame)
    left = bench.run()
    # The first is charged until it has left: 0 < 2,250, 1,000 < 2,000, and 2,000 is not less than 1,750.
    assert left == [frames[0], *[trimmed_frame(frame, SIZE_BYTES) for frame in frames[3:]], *frames[1:3]]
    assert bench.port.stats()["trimmed"]["packets"] == 5
    assert bench.buffer is not None
    assert all(group["dropped_packets"] == 0 for group in bench.buffer.stats()["ports"][1]["ingress"])


def test_a_queue_of_trimmed_packets_in_a_shared_buffer_can_be_full(program: Program) -> None:
    alpha = [0.25] * 8
    alpha[TRIM] = 0.03  # some 200 B
    bench = Bench(program, {"capacity_bytes": 10_000, "alpha": alpha})
    for _ in range(8):
        bench.give(ipv4_frame(1000, TRIMMABLE))
    assert len(bench.run()) == 5
    assert bench.port.stats()["trim_dropped"] == {"packets": 3, "bytes": 3 * SIZE_BYTES}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size_bytes": 63}, "size_bytes is 63"),
        ({"trimmable_dscps": [64]}, "trimmable_dscps has 64"),
        ({"trimmable_dscps": [TRIMMED]}, "dscp 12 of trimmed packets is one of trimmable_dscps"),
    ],
)
def test_settings_that_a_port_refuses(program: Program, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Bench(program, **wrong)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("@weft_trimmed bit<8> trimmed;", "for a field of bit<1>, not 'trimmed'"),
        ("@weft_trimmed bit<1> trimmed; @weft_trimmed bit<1> again;", "'again' is the second field"),
    ],
)
def test_annotations_that_the_compiler_refuses(tmp_path: Path, declared: str, said: str) -> None:
    source = tmp_path / "queue.p4"
    source.write_text(SOURCE.replace("@weft_trimmed bit<1> trimmed;", declared))
    with pytest.raises(CompileError, match=said):
        compile_file(source)
