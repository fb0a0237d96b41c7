"""INT-MD stacks and telemetry reports are decoded as they were encoded, and anything else is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import InvalidValueError
from weft.traffic.int_md_format import (
    INSTRUCTIONS,
    MAX_STACK_WORDS,
    Hop,
    IntMdStack,
    Report,
    ReportedFlow,
    ReportGroup,
    bitmap_of,
    decoded,
    decoded_group,
    encoded,
    encoded_group,
    flow_and_stack,
    hop_words_of,
    inner_packet,
    sequence_counts,
)
from weft.wire.headers.int_md import InnerType, NextProtocol, ReportType

BITMAPS = st.sets(st.sampled_from(sorted(INSTRUCTIONS))).map(bitmap_of)


def hops(bitmap: int) -> st.SearchStrategy[Hop]:
    """Values of every instruction of a bitmap, or none where the hop does not know them; all ones say that."""
    whole = [each for each in INSTRUCTIONS.values() if bitmap & each.mask]

    def of(instruction):
        known = st.tuples(*(st.integers(0, (1 << bits) - 1) for _, bits in instruction.parts)).filter(
            lambda values: any(
                value != (1 << bits) - 1 for value, (_, bits) in zip(values, instruction.parts, strict=True)
            )
        )
        return st.none() | known

    def made(found):
        values = {}
        for instruction, each in zip(whole, found, strict=True):
            names = [name for name, _ in instruction.parts]
            values |= dict(zip(names, each or [None] * len(names), strict=True))
        return Hop(values)

    return st.tuples(*map(of, whole)).map(made)


@st.composite
def stacks(draw, **fields) -> IntMdStack:
    bitmap = draw(BITMAPS)
    words = hop_words_of(bitmap)
    most = min(6, MAX_STACK_WORDS // words) if words else 0
    found = {
        "hops": tuple(draw(st.lists(hops(bitmap), max_size=most))),
        "remaining_hops": draw(st.integers(0, 255)),
        "npt": draw(st.sampled_from(NextProtocol)),
        "original": draw(st.integers(0, 0xFFFF)),
        **{name: draw(st.booleans()) for name in ("discard", "hops_exceeded", "mtu_exceeded")},
        "domain_flags": draw(st.integers(0, 0xFFFF)),
    }
    return IntMdStack(bitmap, **(found | fields))


@given(stacks(), st.binary(max_size=20))
def test_a_stack_is_decoded_as_it_was_encoded(stack: IntMdStack, rest: bytes) -> None:
    data = encoded(stack)
    assert len(data) == stack.size_bytes
    assert decoded(data + rest) == (stack, rest)


@given(stacks(), st.data())
def test_a_cut_stack_is_refused(stack: IntMdStack, data: st.DataObject) -> None:
    whole = encoded(stack)
    with pytest.raises(InvalidValueError):
        decoded(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary(max_size=300))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    for decode in (decoded, decoded_group):
        try:
            decode(data)
        except InvalidValueError:
            continue


def test_the_example_of_the_specification() -> None:
    """INT 2.1, Example with INT-MD in-between UDP header and UDP payload; Hop ML 2, two hops, six more may add."""
    first, second = ({"node_id": node, "queue_id": 0, "queue_bytes": queue} for node, queue in ((1, 7), (2, 9)))
    stack = IntMdStack(bitmap_of(["node", "queue"]), (Hop(first), Hop(second)), remaining_hops=6, original=0x1234)
    assert encoded(stack).hex(" ", 4) == ("14071234 20000206 90000000 00000000 00000002 00000009 00000001 00000007")


def test_the_example_of_a_report_of_the_specification() -> None:
    """Telemetry Report 2.0, Example with Baseline Metadata and Truncated IPv4, as far as its header goes."""
    report = Report(
        ReportType.INT,
        InnerType.IPV4,
        bytes(40),
        Hop({"ingress": 3, "egress": 4, "queue_id": 0, "queue_bytes": 5}),
        bitmap_of(["interfaces", "queue"]),
    )
    data = encoded_group(ReportGroup(node_id=9, sequence=0x2ABCDE, reports=(report,), hardware_id=1))
    assert data[:28].hex(" ", 4) == "206abcde 00000009 140e0220 50000000 00000000 00030004 00000005"
    assert decoded_group(data) == ReportGroup(9, 0x2ABCDE, (report,), 1)


@st.composite
def reports(draw) -> Report:
    kind = draw(st.sampled_from(ReportType))
    bits = draw(BITMAPS) if kind is ReportType.INT else 0
    return Report(
        kind,
        draw(st.sampled_from(InnerType)),
        draw(st.binary(max_size=80).map(lambda data: data[: len(data) // 4 * 4])),
        draw(hops(bits)),
        bits,
        **{name: draw(st.booleans()) for name in ("dropped", "congested", "tracked", "intermediate")},
    )


@given(st.lists(reports(), max_size=4), st.integers(0, 2**32 - 1), st.integers(0, 2**22 - 1))
def test_reports_are_decoded_as_they_were_encoded(found: list[Report], node: int, sequence: int) -> None:
    group = ReportGroup(node, sequence, tuple(found), 5)
    assert decoded_group(encoded_group(group)) == group


def test_a_report_of_255_words_or_more_ends_with_the_datagram() -> None:
    long = Report(ReportType.INNER_ONLY, InnerType.ETHERNET, bytes(2000))
    group = ReportGroup(1, 2, (Report(ReportType.INNER_ONLY, InnerType.NONE), long))
    assert decoded_group(encoded_group(group)) == group
    with pytest.raises(InvalidValueError, match="others follow"):
        encoded_group(replace(group, reports=(long, long)))


ADDRESSES = st.sampled_from([("10.0.0.1", "10.0.1.2"), ("fd00::1", "fd00:0:1::2")])
PORTS = st.integers(0, 0xFFFF)


@given(stacks(npt=NextProtocol.UDP_PAYLOAD, original=4791), ADDRESSES, PORTS, st.integers(0, 2**24 - 1))
def test_a_rocev2_packet_has_its_flow_back(stack: IntMdStack, addresses, port: int, number: int) -> None:
    flow = ReportedFlow(*addresses, 17, port, 4791, queue_pair=number, psn=number ^ 5)
    inner = InnerType.IPV4 if "." in addresses[0] else InnerType.IPV6
    report = Report(ReportType.INNER_ONLY, inner, inner_packet(flow, stack))
    assert flow_and_stack(report) == (flow, stack)


@given(stacks(npt=NextProtocol.LAYER_4, original=6), ADDRESSES, PORTS, PORTS)
def test_a_tcp_packet_has_its_flow_back(stack: IntMdStack, addresses, source: int, destination: int) -> None:
    flow = ReportedFlow(*addresses, 6, source, destination)
    inner = InnerType.IPV4 if "." in addresses[0] else InnerType.IPV6
    assert flow_and_stack(Report(ReportType.INNER_ONLY, inner, inner_packet(flow, stack))) == (flow, stack)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({0: 0x24}, "INT of type 2"),
        ({0: 0x10}, "next protocol type 0"),
        ({4: 0x10}, "INT-MD of version 1"),
        ({6: 0x03}, "3 words of each hop"),
        ({1: 6}, "a stack of 12 B with 8 B of each hop"),
        ({13: 1}, "instructions 0x9000 and 0x0001 of domain 0"),
    ],
)
def test_contradictions_are_named(change: dict[int, int], problem: str) -> None:
    hop = Hop({"node_id": 1, "queue_id": 2, "queue_bytes": 3})
    data = bytearray(encoded(IntMdStack(bitmap_of(["node", "queue"]), (hop, hop))))
    for place, value in change.items():
        data[place] = value
    with pytest.raises(InvalidValueError, match=problem):
        decoded(bytes(data))


def test_unknown_instructions_and_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="instruction 'speed'"):
        bitmap_of(["speed"])
    with pytest.raises(InvalidValueError, match="queue_id 256"):
        encoded(IntMdStack(bitmap_of(["queue"]), (Hop({"queue_id": 256, "queue_bytes": 0}),)))
    many = tuple(Hop({"node_id": 1}) for _ in range(MAX_STACK_WORDS + 1))
    with pytest.raises(InvalidValueError, match="256 words"):
        encoded(IntMdStack(bitmap_of(["node"]), many))


@pytest.mark.parametrize(
    ("numbers", "counts"),
    [
        ([], (0, 0)),
        ([0, 1, 2], (3, 3)),
        ([0, 2, 1], (3, 3)),
        ([0, 0, 1], (2, 2)),
        ([3], (4, 1)),
        ([1, 5, 2], (6, 3)),
        ([2**20, 2**21, 3 * 2**20, 2**22 - 1, 0, 1], (2**22 + 2, 6)),
    ],
)
def test_gaps_in_the_numbers_are_reports_that_are_missing(numbers: list[int], counts: tuple[int, int]) -> None:
    assert sequence_counts(numbers) == counts


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.randoms(use_true_random=False))
def test_losses_are_counted_whatever_the_order_nearby(sent: int, lost: set[int], random) -> None:
    came = [number for number in range(sent) if number not in lost]
    random.shuffle(came)
    expected = max(came) + 1 if came else 0
    assert sequence_counts(came) == (expected, len(came))
