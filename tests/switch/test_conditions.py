"""Conditions on packets (`weft trace --when`), and the headers at each step that they are decided by."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_twin import CPU_PORT, Twin
from router_program import router_document
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from test_native_router import configure, ipv4_packet

from weft.compiler import compile_file
from weft.switch.bmv2json import Program, load_program
from weft.switch.debug.condition_tokens import LONGEST, ConditionError
from weft.switch.debug.conditions import Condition
from weft.switch.debug.replay import Replay
from weft.switch.native import NativeSwitch
from weft.switch.oracle.parser import deparse
from weft.switch.trace.events import PacketTrace, Sent

BASIC = Path(__file__).parents[1] / "dropin" / "programs" / "basic_forward.p4"
STACKS = """
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<8> value; bit<8> more; }
header wide_t { bit<16> a; bit<8> length; varbit<64> rest; }
struct headers { tag_t first; tag_t other; tag_t[3] tags; wide_t wide; }
struct metadata { bit<8> seen; bit<8> never; tag_t kept; }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.first);
        transition tags;
    }
    state tags {
        packet.extract(hdr.tags.next);
        transition select(hdr.tags.last.more) { 1: tags; 2: wide; default: accept; }
    }
    state wide {
        bit<8> length = packet.lookahead<bit<24>>()[7:0];
        packet.extract(hdr.wide, (bit<32>)(length & 7) * 8);
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action swap() { hdr.other = hdr.first; hdr.first = hdr.tags[0]; }
    apply {
        standard_metadata.egress_spec = 2;
        meta.seen = hdr.first.value;
        if (hdr.first.value[0:0] == 1) { hdr.tags.push_front(1); hdr.tags[0].setValid(); hdr.tags[0].value = 7; }
        if (hdr.first.value[1:1] == 1) { hdr.tags.pop_front(1); }
        if (hdr.first.value[2:2] == 1) { swap(); }
        if (hdr.first.value[3:3] == 1) { hdr.wide.setInvalid(); }
        if (hdr.first.value[4:4] == 1) { mark_to_drop(standard_metadata); }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.first); packet.emit(hdr.other); packet.emit(hdr.tags); packet.emit(hdr.wide); }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def traced(program: Program, *packets: bytes, port: int = 1) -> list[PacketTrace]:
    """Return what happens to packets in a switch without entries."""
    switch = NativeSwitch(name="traced", cpu_port=CPU_PORT)
    switch.load(program)
    switch.trace.start()
    for packet in packets:
        switch.process(port, packet)
    return switch.trace.take()


@pytest.fixture(scope="module")
def basic() -> Program:
    return load_program(compile_file(BASIC).json_text())


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = tmp_path_factory.mktemp("p4") / "stacks.p4"
    path.write_text(STACKS)
    return load_program(compile_file(path).json_text())


@pytest.fixture(scope="module")
def router() -> Twin:
    made = Twin(router_document())
    made.both(configure)
    made.native.trace.start()
    return made


def emitted_is_what_the_replay_has(program: Program, trace: PacketTrace) -> int:
    """Compare every packet that left with the headers of that moment; returns how many left."""
    left = 0
    (deparser,) = program.deparsers.values()
    for moment in Replay(program).moments(trace.root):
        if isinstance(moment.event, Sent):
            left += 1
            moment.packet.payload, moment.packet.trace = b"", None
            headers = deparse(deparser, moment.packet)
            assert moment.event.data[: len(headers)] == headers[: len(moment.event.data)]
    return left


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=st.integers(0, 255), data=st.binary(max_size=16))
def test_the_headers_of_a_replay_are_those_that_the_switch_emits(stacks: Program, first: int, data: bytes) -> None:
    (trace,) = traced(stacks, bytes([first]) + data)
    sent = [event for event in trace.root.events if isinstance(event, Sent)]
    assert emitted_is_what_the_replay_has(stacks, trace) == len(sent)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    port=st.sampled_from([0, 1, 2, 3, 4, 5, 6]),
    destination=st.sampled_from([0x0A010203, 0x0A010204, 0x0A010205, 0x0A0000FF]),
    protocol=st.sampled_from([6, 17]),
)
def test_and_so_are_those_of_copies(router: Twin, port: int, destination: int, protocol: int) -> None:
    router.native.process(port, ipv4_packet(0x0C000001, destination, 64, protocol))
    for trace in router.native.trace.take():
        emitted_is_what_the_replay_has(router.program, trace)


MAC = "02:00:00:00:00:01"
UNROUTED = bytes(Ether(src=MAC, dst="02:00:00:00:00:02", type=0x0800) / IP(dst="10.0.1.2", ttl=9) / UDP())


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("drop", True),
        ("drop program_ingress", True),
        ("drop tail_drop", False),
        ("not drop", False),
        ("ipv4.dstAddr == 10.0.1.2", True),
        ("hdr.ipv4.dst == 10.0.1.2 and drop", True),
        ("ipv4.dst == 10.0.1.3 && drop", False),
        ("ipv4.dst == 10.0.1.3 || drop", True),
        ("ipv4.dst == 10.0.0.0/16", True),
        ("ipv4.dst != 10.0.0.0/16", False),
        ("10.0.1.0 <= ipv4.dst and ipv4.dst < 10.0.2.0", True),
        (f"ethernet.srcAddr == {MAC}", True),
        ("ethernet.etherType == 0x0800", True),
        ("ipv4.ttl & 0x8 == 8", True),
        ("(ipv4.ttl & 6) != 0", False),
        ("!(ipv4.ttl == 0b1001)", False),
        ("not ipv4.ttl == 64 and ipv4.isValid()", True),
        ("ipv4.ttl < ipv4.protocol", True),
        ("ipv4.protocol <= ipv4.ttl", False),
        ("table ipv4_lpm", True),
        ("table MyIngress.ipv4_lpm miss", True),
        ("table ipv4_lpm hit", False),
        ('table ipv4_lpm entry "10.0.1.0/24"', False),
        ("action MyIngress.drop", True),
        ("action ipv4_forward", False),
        ("state parse_ipv4", True),
        ("port == 1", True),
        ("port == 2 or out_port == 1", False),
        ("standard_metadata.ingress_port == 1", True),
        ("egress_spec == 511", True),
        ("packet_length == 42", True),
        ("egress_rid == 0", True),
        ("parser_error == error.NoError", True),
        ("parser_error != error.NoError", False),
    ],
)
def test_a_condition_is_decided(basic: Program, condition: str, holds: bool) -> None:
    (trace,) = traced(basic, UNROUTED)
    assert Condition(condition, basic).holds(trace) is holds


def test_a_header_that_a_packet_has_not_equals_nothing_and_differs_from_nothing(basic: Program) -> None:
    (trace,) = traced(basic, UNROUTED[:20])
    for condition in ("ipv4.ttl == 0", "ipv4.ttl != 0", "ipv4"):
        assert not Condition(condition, basic).holds(trace)
    assert Condition("parser_error == error.PacketTooShort and not ipv4.isValid()", basic).holds(trace)


def test_fields_hold_what_they_held_at_any_moment(stacks: Program) -> None:
    (trace,) = traced(stacks, bytes([5, 9, 8, 0]))
    for condition in (
        "meta.seen == 5",
        "meta.never == 0",
        "first.value == 5",
        "tags[0].value == 7",
        "other.value == 5",
    ):
        assert Condition(condition, stacks).holds(trace), condition
    assert not Condition("meta.seen == 0", stacks).holds(trace), "it was given another value"


@pytest.mark.parametrize(
    ("condition", "column", "message"),
    [
        ("", 1, "the condition is empty"),
        ("drop drop", 6, "unknown reason 'drop'; did you mean 'tail_drop'?"),
        ("drop and", 9, "a field, a number or a condition is missing before the end"),
        ("drop) or drop", 5, r"'\)' after the condition's end \(valid: and, or\)"),
        ("(drop or drop", 14, r"'\)' is missing before the end"),
        ("ipv4.tll == 3", 1, "unknown field 'ipv4.tll'; did you mean 'ipv4.ttl'?"),
        ("drop and ipv5.ttl == 3", 10, "unknown header 'ipv5'; did you mean 'ipv4'?"),
        ("tabel x", 1, "unknown name 'tabel'; did you mean 'table'?"),
        ("table ipv4_lpn hit", 7, "unknown table 'ipv4_lpn'"),
        ("table ipv4_lpm entry 3", 22, "an entry is given as text"),
        ("action 3", 8, "the name of an action is missing before '3'"),
        ("state strat", 7, "unknown parser state 'strat'; did you mean 'start'?"),
        ("ipv4.ttl == 10.0.0.1", 13, "'10.0.0.1' has 32 bits, but 'ipv4.ttl' has 8"),
        ("256 == ipv4.ttl", 1, "'256' has 9 bits, but 'ipv4.ttl' has 8"),
        ("3 == 3", 1, "'3' and '3' are both numbers"),
        ("ipv4.ttl", 9, r"'ipv4.ttl' is to be compared with something \(valid: ==, !=,"),
        ("ipv4.ttl = 3", 10, "unexpected '='"),
        ("ipv4.dstAddr == 10.0.0.0/33", 17, "prefix length 33 is above 32"),
        ("ipv4.dstAddr == 10.0.0.300", 17, "300"),
        (
            "parser_error == error.TooShort",
            17,
            "unknown error 'error.TooShort'; did you mean 'PacketTooShort'?",
        ),
        ("(" * 100 + "drop" + ")" * 100, 66, "more than 64 parentheses"),
        ("drop or " * 1000, LONGEST, f"at most {LONGEST} characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_column(basic: Program, condition: str, column: int, message: str) -> None:
    with pytest.raises(ConditionError, match=message) as caught:
        Condition(condition, basic)
    assert caught.value.column == column


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(alphabet="ipv4.tl dro()&!=<>01:a\"'/|nehx", max_size=40))
def test_any_text_is_read_or_refused(basic: Program, text: str) -> None:
    with contextlib.suppress(ConditionError):
        Condition(text, basic)


@pytest.mark.parametrize(
    "condition",
    [
        "ipv4.ttl==" + "9" * 4000,
        "drop and " * 400,
        "drop and\n" + "(" * 400,
        "ipv4." + "x" * 4000,
        "x" * 4090,
    ],
)
def test_an_error_shows_a_long_condition_around_its_place(basic: Program, condition: str) -> None:
    with pytest.raises(ConditionError) as caught:
        Condition(condition, basic)
    *problem, line, mark = caught.value.shown(condition).split("\n")
    assert len("".join(problem)) < 500
    assert len(line) < 140
    column = caught.value.column
    if column <= len(condition):
        assert line[len(mark) - 1] == condition[column - 1]
    assert mark.strip() == "^"


def test_ipv6_addresses() -> None:
    from weft.switch.debug.condition_tokens import tokens_of

    values = [token.literal.value for token in tokens_of("fe80::1 ::1 2001:db8::/32 1:2:3:4:5:6:7:8") if token.literal]
    assert values == [0xFE80 << 112 | 1, 1, 0x20010DB8 << 96, 0x00010002000300040005000600070008]
