"""Weft's own formats (INT shim, aggregation, PFC) against bytes written down from docs/spec."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Raw, raw

from tests.refusals import refused
from weft.engine import _core
from weft.topologies.addressing import result_group_address, result_group_mac
from weft.traffic.aggregation_format import Kind, Operation
from weft.traffic.int_stack import stack_in_bytes
from weft.traffic.layers import (
    BTH,
    DETH,
    AggregationHeader,
    IntHop,
    IntShim,
    aggregation_frame,
    icrc_is_valid,
    pfc_frame,
)

MACS = {"source_mac": "02:00:00:00:00:01", "destination_mac": "02:01:00:00:00:00"}
HOP_FIELDS = st.tuples(
    st.integers(0, 10), st.integers(0, 2**24 - 1), st.integers(0, 2**20 - 1), st.integers(0, 2**16 - 1)
)
WORKER = {**MACS, "source_ip": "10.0.0.1", "destination_ip": "10.0.0.254", "qkey": 0xDEADBEEF}


def test_int_shim_stands_bit_by_bit_as_written_down():
    shim = IntShim(
        echo=1,
        hop_count=2,
        path_id=0xABC,
        hops=[
            IntHop(rate_code=6, timestamp_ns=0x123456, tx_units=0x789AB, queue_cells=0xCDEF),
            IntHop(rate_code=10, timestamp_ns=1, tx_units=2, queue_cells=3),
            IntHop(),
            IntHop(),
            IntHop(),
        ],
    )
    expected = "180508002abc6123456789abcdefa000001000020003" + "00" * 24
    assert raw(shim).hex() == expected
    assert raw(IntShim()).hex() == "100508000000" + "00" * 40


@pytest.mark.parametrize(("layer", "ethertype"), [(IP, 0x0800), (IPv6, 0x86DD)])
def test_int_shim_sits_between_ethernet_and_ip(layer, ethertype):
    frame = raw(Ether(src="02::01") / IntShim() / layer() / UDP(dport=4791, chksum=0) / BTH(opcode=4))
    assert frame[12:14].hex() == "88b5"
    assert frame[16:18] == struct.pack("!H", ethertype)
    assert Ether(frame).layers()[:5] == [Ether, IntShim, layer, UDP, BTH]
    tagged = raw(Ether() / Dot1Q(vlan=5) / IntShim() / layer() / UDP(dport=4791, chksum=0) / BTH(opcode=4))
    assert Ether(tagged).layers()[:4] == [Ether, Dot1Q, IntShim, layer]
    assert icrc_is_valid(frame)
    assert icrc_is_valid(tagged)


@given(
    st.lists(HOP_FIELDS, max_size=5),
    st.integers(0, 0xFFF),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_engine_and_layer_agree_on_what_a_stack_says(hops, path_id, echo, overflow):
    rates = [0, 1, 10, 25, 40, 50, 100, 200, 400, 800, 1600]
    stamped = [IntHop(rate_code=r, timestamp_ns=t, tx_units=x, queue_cells=q) for r, t, x, q in hops]
    stamped += [IntHop()] * (5 - len(hops))
    shim = IntShim(echo=int(echo), overflow=int(overflow), hop_count=len(hops), path_id=path_id, hops=stamped)
    ip = IP(src="10.0.0.1", dst="10.0.0.2")
    headers, _ = _core.parse_packet(raw(Ether() / shim / ip / UDP(dport=4791, chksum=0) / BTH(opcode=4)))
    assert headers["telemetry"]["echo"] == echo
    names = ("rate_bps", "timestamp_ns", "tx_bytes", "queue_bytes")
    assert stack_in_bytes(headers["telemetry"]) == {
        "path_id": path_id,
        "overflow": overflow,
        "hops": [dict(zip(names, (rates[r] * 10**9, t, 128 * x, 80 * q), strict=True)) for r, t, x, q in hops],
    }


def test_contribution_stands_bit_by_bit_as_written_down():
    frame = aggregation_frame(
        **WORKER,
        operation=Operation.MAX,
        job_id=0x0102,
        epoch=0x0304,
        slot=0x0506,
        round_number=0x0708090A,
        rank=0x0B0C,
        destination=0x0D0E,
        lanes=[1, -1, -(2**31), 2**31 - 1],
    )
    data = raw(frame)
    assert len(data) == 342
    assert data[14 + 20 + 4 : 14 + 20 + 8].hex() == "01340000"  # UDP length 308, no checksum
    assert data[42:54].hex() == "6440ffff00a660000008090a"
    assert data[54:62].hex() == "deadbeef00a66000"
    assert data[62:82].hex() == "20010102030405060708090a0b0c004000000d0e"
    assert data[82:98].hex() == "00000001ffffffff800000007fffffff"
    assert data[98:338] == bytes(240)
    assert icrc_is_valid(data)


def test_result_goes_to_the_group_and_says_so():
    result = aggregation_frame(
        **{
            **WORKER,
            "destination_ip": str(result_group_address(0x1234)),
            "destination_mac": result_group_mac(0x1234),
        },
        kind=Kind.RESULT,
        job_id=0x1234,
        lanes=range(64),
    )
    parsed = Ether(raw(result))
    assert (parsed.dst, parsed[IP].dst) == ("01:00:5e:57:12:34", "239.87.18.52")
    assert parsed[BTH].dqpn == 0xFFFFFF
    assert (parsed[AggregationHeader].kind, parsed[AggregationHeader].lanes) == (1, list(range(64)))
    with refused(ValueError, valid="0 to 65535", problem="65536"):
        result_group_mac(65536)


def test_a_header_alone_is_an_aggregation_packet_of_its_own_length():
    data = raw(aggregation_frame(**WORKER, lanes=()))
    assert len(data) == 86
    assert data[14 + 20 + 4 : 14 + 20 + 6].hex() == "0034"
    header = Ether(data)[AggregationHeader]
    assert (header.lane_count, header.lanes, header.destination) == (0, [], 0xFFFF)
    assert icrc_is_valid(data)


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=64, max_size=64),
    st.integers(0, 2**32 - 1),
    st.integers(0, 0xFFFF),
    st.sampled_from(list(Kind)),
)
@settings(max_examples=25, deadline=None)
def test_aggregation_frames_dissect_into_what_was_built(lanes, round_number, slot, kind):
    frame = raw(aggregation_frame(**WORKER, kind=kind, round_number=round_number, slot=slot, lanes=lanes))
    parsed = Ether(frame)
    assert parsed.layers() == [Ether, IP, UDP, BTH, DETH, AggregationHeader]
    header = parsed[AggregationHeader]
    assert (header.lanes, header.round, header.slot, header.kind) == (lanes, round_number, slot, kind)
    assert parsed[BTH].psn == round_number % 2**24
    assert raw(parsed) == frame


def test_ordinary_datagrams_are_not_taken_for_aggregation():
    other_qp = aggregation_frame(**WORKER)
    other_qp[BTH].dqpn = 0x1234
    longer = aggregation_frame(**WORKER) / Raw(b"more")
    for frame in (other_qp, longer):
        assert AggregationHeader not in Ether(raw(frame))


def test_lanes_are_padded_and_refused_beyond_1024():
    data = raw(AggregationHeader(lanes=[7]))
    assert (data[14:16].hex(), data[20:28].hex(), len(data)) == ("0040", "0000000700000000", 20 + 256)
    assert len(raw(AggregationHeader(lanes=[7] * 65))) == 20 + 4 * 128
    with refused(ValueError, valid="at most 1024", problem="1025 lanes"):
        raw(AggregationHeader(lanes=[0] * 1025))
    with pytest.raises(struct.error):
        raw(AggregationHeader(lanes=[2**31]))


def test_a_truncated_aggregation_packet_does_not_crash_the_dissector():
    frame = raw(aggregation_frame(**WORKER, lanes=range(64)))
    for length in range(14, len(frame), 7):
        assert raw(Ether(frame[:length]))[:14] == frame[:14]


def test_pfc_frame_pauses_the_classes_asked_for():
    frame = raw(pfc_frame("02:01:00:00:00:00", {3: 0xFFFF, 6: 0}))
    quanta = "0000" * 3 + "ffff" + "0000" * 4
    assert frame[:34].hex() == "0180c2000001020100000000880801010048" + quanta
    assert frame[34:] == bytes(26)


@pytest.mark.parametrize(
    ("quanta", "message"),
    [
        ({8: 1}, {"valid": "0 to 7", "problem": "priority class 8"}),
        ({0: 65536}, {"valid": "0 to 65535", "problem": "65536 pause quanta"}),
    ],
)
def test_pfc_frame_refuses_what_does_not_fit(quanta, message):
    with refused(ValueError, **message):
        pfc_frame("02:01:00:00:00:00", quanta)
